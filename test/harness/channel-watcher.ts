/** Players in headless Chromium that report every frame they show and every beep they play. */
import type { Page } from 'playwright-core';
import type { FilmColour } from './flash-films.ts';
import { PageBrowser } from './page-browser.ts';

const SIZE = { width: 640, height: 360 };
/** Delay of a timer on the page, ms, from which on the machine was busy; observations within the same time after it prove nothing. */
const BUSY_MS = 60;
const BUSY_BEFORE_MS = 2500;
const BRIGHT = 128;
const NOTED_MS = 3000;
const RTP_RATE = 90_000;
const RTP_ROUND = 2 ** 32;
/** Minimum time between two beeps, ms. */
const QUIET_MS = 300;

interface ShownFrame {
  /** Seconds. For a live connection, the time at which the frame should be shown, which moves with the jitter buffer. */
  readonly mediaTime: number;
  /** RTP timestamp, 1/90000 s; null for other protocols. */
  readonly rtp: number | null;
  /** Clock of the page, ms. */
  readonly shownAt: number;
  /** Frames shown so far. */
  readonly count: number;
  readonly width: number;
  readonly light: number;
  readonly colour: readonly number[];
}

interface Told {
  /** Clock of the page, ms. */
  readonly at: number;
  readonly what: string;
}

interface Seen {
  readonly frames: ShownFrame[];
  /** `at`: clock of the page, ms; `heardAt`: clock of its audio, seconds. */
  readonly sound: { readonly at: number; readonly heardAt: number; readonly loud: boolean }[];
  readonly stalls: Told[];
  readonly errors: Told[];
  readonly notes: Told[];
  readonly late: { readonly at: number; readonly ms: number }[];
}

/** The transition from one item to the next. */
export interface Boundary {
  readonly from: FilmColour;
  readonly to: FilmColour;
  /** Clock of the page, ms. */
  readonly at: number;
  /** Largest distance between consecutive frames around it, ms, by the clock and by the media. */
  readonly shownGap: number;
  readonly mediaGap: number;
  /** Media time, seconds, of the last seen frame of the first item and the first of the second. */
  readonly between: readonly [number, number];
  /**
   * Median delay of three beeps relative to their flashes, ms; null if fewer were heard. Includes a constant for all beeps of one `run`.
   */
  readonly offset: number | null;
  /** Number of earlier stalls; each may change the constant in `offset`. */
  readonly run: number;
  /** The machine was busy with other work. */
  readonly busy: boolean;
}

/** Difference between the media time of a flash and the audio clock at which its beep is heard. */
interface FlashOffset {
  /** Time at which the flash was shown. */
  readonly at: number;
  readonly ms: number;
}

/** Everything that one player has shown. */
export class Watched {
  readonly #seen: Seen = { frames: [], sound: [], stalls: [], errors: [], late: [], notes: [] };

  add(seen: Seen): void {
    this.#seen.frames.push(...seen.frames);
    this.#seen.sound.push(...seen.sound);
    this.#seen.stalls.push(...seen.stalls);
    this.#seen.errors.push(...seen.errors);
    this.#seen.late.push(...seen.late);
    this.#seen.notes.push(...seen.notes);
  }

  /** Discards the observations so far, because joining a live stream is not judged. */
  forget(): void {
    for (const list of Object.values(this.#seen)) list.length = 0;
  }

  get frames(): number {
    return this.#seen.frames.length;
  }

  /** Errors of the player while the machine was not busy with other work. */
  get errors(): readonly Told[] {
    return this.#seen.errors.filter(({ at }) => !this.#isBusy(at));
  }

  /** Stalls while the machine was not busy with other work. */
  get stalls(): readonly Told[] {
    return this.#seen.stalls.filter(({ at }) => !this.#isBusy(at));
  }

  /** Notes of the player in the seconds before a moment of its page, ms. */
  notesBefore(moment: number): string[] {
    const { notes } = this.#seen;
    return notes
      .filter(({ at }) => at <= moment && moment - at < NOTED_MS)
      .map(({ at, what }) => `${((at - moment) / 1000).toFixed(2)} s: ${what}`);
  }

  get boundaries(): Boundary[] {
    const { frames } = this.#seen;
    const offsets = this.#offsets;
    return frames.flatMap((frame, index) => {
      const before = frames[index - 1];
      if (before === undefined || colourOf(before) === colourOf(frame)) return [];
      return this.#boundary(before, frame, offsets);
    });
  }

  #boundary(last: ShownFrame, first: ShownFrame, offsets: readonly FlashOffset[]): Boundary {
    const { frames } = this.#seen;
    const { shownAt: at } = first;
    const [from, to, between] = [colourOf(last), colourOf(first), [timeOf(last), timeOf(first)] as const];
    const around = frames.filter(({ shownAt }) => Math.abs(shownAt - at) < 500);
    const gaps = around.slice(1).map((frame, index) => {
      const before = around[index] ?? frame;
      // A slow page misses callbacks, but no frames: their number is known.
      const shown = Math.max(1, frame.count - before.count);
      return { clock: (frame.shownAt - before.shownAt) / shown, media: (secondsBetween(before, frame) * 1000) / shown };
    });
    const behind = offsets.filter((offset) => offset.at > at && offset.at < at + 3500).map(({ ms }) => ms);
    return {
      ...{ from, to, at, busy: this.#isBusy(at), run: this.#seen.stalls.filter((stall) => stall.at < at).length },
      ...{ offset: behind.length < 3 ? null : middle(behind.slice(0, 3)) },
      // Reported times are fractions of milliseconds.
      ...{ shownGap: Math.round(Math.max(0, ...gaps.map(({ clock }) => clock))) },
      ...{ mediaGap: Math.round(Math.max(0, ...gaps.map(({ media }) => media))), between },
    };
  }

  /**
   * Offsets from flashes to beeps, as the media element plays them. Media time follows the audio clock: the time of a frame on the screen
   * depends on the refresh rate, the time of audible samples on the audio device, and both vary by tens of ms in good playback.
   */
  get #offsets(): FlashOffset[] {
    const { frames, sound } = this.#seen;
    const beeps = sound.filter(({ at, loud }, index) => loud && at - (sound[index - 1]?.at ?? 0) > QUIET_MS);
    return frames.flatMap((flash, index) => {
      if (flash.light <= BRIGHT || (frames[index - 1]?.light ?? flash.light) > BRIGHT) return [];
      const [nearest] = [...beeps].sort((a, b) => Math.abs(a.at - flash.shownAt) - Math.abs(b.at - flash.shownAt));
      return nearest === undefined ? [] : [{ at: flash.shownAt, ms: (nearest.heardAt - flash.mediaTime) * 1000 }];
    });
  }

  #isBusy(moment: number): boolean {
    return this.#seen.late.some(({ at, ms }) => ms > BUSY_MS && moment - at < BUSY_BEFORE_MS && at - moment < 500);
  }
}

/** Media time between two frames. */
function secondsBetween(before: ShownFrame, frame: ShownFrame): number {
  if (before.rtp === null || frame.rtp === null) return frame.mediaTime - before.mediaTime;
  return ((frame.rtp - before.rtp + RTP_ROUND) % RTP_ROUND) / RTP_RATE;
}

function timeOf({ rtp, mediaTime }: ShownFrame): number {
  return rtp === null ? mediaTime : rtp / RTP_RATE;
}

function middle(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

function colourOf({ colour: [red = 0, green = 0] }: ShownFrame): FilmColour {
  if (red > 128) return green > 128 ? 'yellow' : 'red';
  return green > 64 ? 'green' : 'blue';
}

/** One playing page. */
export class ChannelPage {
  readonly page: Page;
  readonly watched = new Watched();

  constructor(page: Page) {
    this.page = page;
  }

  /** Fetches the observations since the last call. */
  async look(): Promise<void> {
    this.watched.add(await this.page.evaluate('look()'));
  }
}

/** Its creator closes it. */
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

  /** Plays a multivariant playlist with hls.js. */
  async hls(url: string): Promise<ChannelPage> {
    return await this.#play('playHls', url);
  }

  /** Plays a `ws://` URL with OvenPlayer. */
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
