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
  /** EXT-X-PROGRAM-DATE-TIME of the present frame, ms since the epoch. */
  readonly programDate: number | null;
  readonly level: number;
  readonly playing: boolean;
  /** Number of stalls after playback had begun. */
  readonly stalls: number;
  /** Number of restarts of the page after fatal errors. */
  readonly restarts: number;
  /** Time from loading the page to the first frame, ms. */
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

  /** Mean and variance of the present frame's brightness. */
  async picture(): Promise<{ mean: number; variance: number } | null> {
    return await this.page.evaluate('player.picture()');
  }

  /** Delay from the encoder to the screen, ms, read from the burnt-in clock; null without a frame. */
  async delay(): Promise<number | null> {
    const clock: { ticks: number; seenAt: number } | null = await this.page.evaluate('player.clock()');
    return clock === null ? null : clockDelay(clock.ticks, clock.seenAt);
  }

  /** Waits until `seconds` more of video have been played; the time before the first frame counts as 0, even in a live stream. */
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
   * Opens a page that plays `url` with hls.js in low-latency mode. `catchUpRate`: maximum playback rate while the player is too far behind
   * live; with 1, the default of hls.js, it never catches up.
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
