/** Headless Chromium with an hls.js player. */
import type { Page } from 'playwright-core';
import { CLOCK_BITS, CLOCK_CELL, clockDelay } from './burnt-clock.ts';
import { PageBrowser } from './page-browser.ts';
import { until } from './poll.ts';

const SIZE = { width: 640, height: 360 };

/** State of the page's player. */
export interface PlayerState {
  /** `video.currentTime`, seconds. */
  readonly time: number;
  readonly readyState: number;
  readonly width: number;
  readonly height: number;
  readonly frames: number;
  readonly dropped: number;
  /** hls.js's own estimate, seconds. */
  readonly latency: number | null;
  /** EXT-X-PROGRAM-DATE-TIME of the frame on show, ms since the epoch. */
  readonly programDate: number | null;
  readonly level: number;
  readonly playing: boolean;
  /** Times playback ran dry after it had begun. */
  readonly stalls: number;
  /** Times the page began again after a fatal error. */
  readonly restarts: number;
  /** From loading the page to the first frame. */
  readonly firstFrameMs: number | null;
  readonly errors: readonly string[];
}

/** One page that plays one URL. */
export class HlsPlayer {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async state(): Promise<PlayerState> {
    return await this.page.evaluate('player.state()');
  }

  /** Mean and variance of the brightness on show. */
  async picture(): Promise<{ mean: number; variance: number } | null> {
    return await this.page.evaluate('player.picture()');
  }

  /** Milliseconds from encoder to screen, read from the burnt-in clock; null without a frame. */
  async delay(): Promise<number | null> {
    const clock: { ticks: number; seenAt: number } | null = await this.page.evaluate('player.clock()');
    return clock === null ? null : clockDelay(clock.ticks, clock.seenAt);
  }

  /** Waits until `seconds` more of video have been played; the time before the first frame is 0, also where a live stream begins later. */
  async played(seconds: number, deadlineMs: number): Promise<PlayerState> {
    const from = (await this.state()).time;
    let last: PlayerState | null = null;
    try {
      return await until(
        `the player advances ${seconds} s`,
        async () => {
          last = await this.state();
          return last.time >= from + seconds && last.frames > 0 ? last : null;
        },
        { deadlineMs, everyMs: 200 },
      );
    } catch (error) {
      throw new Error(`the player stayed at ${JSON.stringify(last)}`, { cause: error });
    }
  }
}

/** Its creator closes it. */
export class PlayerBrowser {
  readonly #browser: PageBrowser;

  constructor(browser: PageBrowser) {
    this.#browser = browser;
  }

  /**
   * Opens a page that plays `url` with hls.js in low-latency mode. `catchUpRate` is how fast it may play while it is
   * too far behind live; 1, hls.js's own setting, never catches up.
   */
  async play(url: string, catchUpRate = 1.5): Promise<HlsPlayer> {
    const query = { src: url, cells: `${CLOCK_BITS}`, cell: `${CLOCK_CELL}`, rate: `${catchUpRate}` };
    return new HlsPlayer(await this.#browser.open(SIZE, query));
  }

  close(): Promise<void> {
    return this.#browser.close();
  }
}

export async function openBrowser(): Promise<PlayerBrowser> {
  return new PlayerBrowser(await PageBrowser.start({ page: 'player.html', scripts: { '/hls.js': 'hls.js/dist/hls.min.js' } }));
}
