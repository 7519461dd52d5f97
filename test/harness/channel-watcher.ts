/** Players in headless Chromium that tell every frame they show and every beep they let hear. */
import type { Page } from 'playwright-core';
import type { FilmColour } from './flash-films.ts';
import { PageBrowser } from './page-browser.ts';

const SIZE = { width: 640, height: 360 };
/** A timer of the page that is so late, ms, shows that the machine was busy; what happens within so long afterwards proves nothing. */
const BUSY_MS = 60;
const BUSY_BEFORE_MS = 2500;
const BRIGHT = 128;
/** Between two beeps at least, ms. */
const QUIET_MS = 300;

interface ShownFrame {
  /** Seconds. */
  readonly mediaTime: number;
  /** By the clock of the page, ms. */
  readonly shownAt: number;
  /** Frames shown so far. */
  readonly count: number;
  readonly width: number;
  readonly light: number;
  readonly colour: readonly number[];
}

interface Seen {
  readonly frames: ShownFrame[];
  readonly sound: { readonly at: number; readonly loud: boolean }[];
  readonly stalls: { readonly at: number; readonly time: number }[];
  readonly errors: { readonly at: number; readonly what: string }[];
  readonly late: { readonly at: number; readonly ms: number }[];
}

/** The moment at which one item follows another. */
export interface Boundary {
  readonly from: FilmColour;
  readonly to: FilmColour;
  /** By the clock of the page, ms. */
  readonly at: number;
  /** From one frame that was shown to the next, around it: the most, ms, of the clock and of the media. */
  readonly shownGap: number;
  readonly mediaGap: number;
  /** How much later beeps are heard than flashes are seen behind it, ms, the middle of three; null: too few were. With what the output of the machine adds. */
  readonly offset: number | null;
  /** The machine was busy with something else. */
  readonly busy: boolean;
}

/** Everything that one player has shown. */
export class Watched {
  readonly #seen: Seen = { frames: [], sound: [], stalls: [], errors: [], late: [] };

  add(seen: Seen): void {
    this.#seen.frames.push(...seen.frames);
    this.#seen.sound.push(...seen.sound);
    this.#seen.stalls.push(...seen.stalls);
    this.#seen.errors.push(...seen.errors);
    this.#seen.late.push(...seen.late);
  }

  /** Joining a live stream is no part of what is judged. */
  forget(): void {
    for (const list of Object.values(this.#seen)) list.length = 0;
  }

  get frames(): number {
    return this.#seen.frames.length;
  }

  /** What players complained of while the machine was not busy with something else. */
  get errors(): string[] {
    return this.#seen.errors.filter(({ at }) => !this.#isBusy(at)).map(({ what }) => what);
  }

  /** Times it ran dry, media seconds, while the machine was not busy with something else. */
  get stalls(): number[] {
    return this.#seen.stalls.filter(({ at }) => !this.#isBusy(at)).map(({ time }) => time);
  }

  get boundaries(): Boundary[] {
    const { frames } = this.#seen;
    return frames.flatMap((frame, index) => {
      const before = frames[index - 1];
      if (before === undefined || colourOf(before) === colourOf(frame)) return [];
      return this.#boundary(colourOf(before), colourOf(frame), frame.shownAt);
    });
  }

  #boundary(from: FilmColour, to: FilmColour, at: number): Boundary {
    const { frames } = this.#seen;
    const around = frames.filter(({ shownAt }) => Math.abs(shownAt - at) < 500);
    const gaps = around.slice(1).map((frame, index) => {
      const before = around[index] ?? frame;
      // Callbacks are left out where the page is slow, frames are not: how many were shown is known.
      const shown = Math.max(1, frame.count - before.count);
      return { clock: (frame.shownAt - before.shownAt) / shown, media: ((frame.mediaTime - before.mediaTime) * 1000) / shown };
    });
    const behind = this.#offsets.filter((offset) => offset.at > at && offset.at < at + 3500).map(({ ms }) => ms);
    return {
      ...{ from, to, at, busy: this.#isBusy(at), offset: behind.length < 3 ? null : middle(behind.slice(0, 3)) },
      // Times are told in fractions that are none of milliseconds.
      ...{ shownGap: Math.round(Math.max(0, ...gaps.map(({ clock }) => clock))) },
      ...{ mediaGap: Math.round(Math.max(0, ...gaps.map(({ media }) => media))) },
    };
  }

  /** Of every flash to its beep. */
  get #offsets(): { readonly at: number; readonly ms: number }[] {
    const { frames, sound } = this.#seen;
    const beeps = sound.filter(({ at, loud }, index) => loud && at - (sound[index - 1]?.at ?? 0) > QUIET_MS);
    const flashes = frames.filter(({ light }, index) => light > BRIGHT && (frames[index - 1]?.light ?? light) <= BRIGHT);
    return flashes.flatMap(({ shownAt }) => {
      const [nearest] = beeps.map(({ at }) => at - shownAt).sort((a, b) => Math.abs(a) - Math.abs(b));
      return nearest === undefined ? [] : [{ at: shownAt, ms: nearest }];
    });
  }

  #isBusy(moment: number): boolean {
    return this.#seen.late.some(({ at, ms }) => ms > BUSY_MS && moment - at < BUSY_BEFORE_MS && at - moment < 500);
  }
}

function middle(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

function colourOf({ colour: [red = 0, green = 0] }: ShownFrame): FilmColour {
  if (red > 128) return green > 128 ? 'yellow' : 'red';
  return green > 64 ? 'green' : 'blue';
}

/** One page that plays. */
export class ChannelPage {
  readonly page: Page;
  readonly watched = new Watched();

  constructor(page: Page) {
    this.page = page;
  }

  /** Takes over what has been seen since the last look. */
  async look(): Promise<void> {
    this.watched.add(await this.page.evaluate('look()'));
  }
}

/** Whoever made it closes it. */
export class ChannelBrowser {
  readonly #browser: PageBrowser;

  private constructor(browser: PageBrowser) {
    this.#browser = browser;
  }

  static async open(): Promise<ChannelBrowser> {
    const scripts = { '/hls.js': 'hls.js/dist/hls.min.js', '/ovenplayer.js': 'ovenplayer/dist/ovenplayer.js' };
    const switches = ['--allow-loopback-in-peer-connection'];
    return new ChannelBrowser(await PageBrowser.start({ page: 'channel-player.html', scripts, switches }));
  }

  /** Plays a multivariant playlist by hls.js. */
  async hls(url: string): Promise<ChannelPage> {
    return await this.#play('playHls', url);
  }

  /** Plays a `ws://` URL by OvenPlayer. */
  async oven(url: string): Promise<ChannelPage> {
    return await this.#play('playOven', url);
  }

  close(): Promise<void> {
    return this.#browser.close();
  }

  async #play(way: string, url: string): Promise<ChannelPage> {
    const page = await this.#browser.open(SIZE);
    await page.evaluate(`${way}(${JSON.stringify(url)})`);
    return new ChannelPage(page);
  }
}
