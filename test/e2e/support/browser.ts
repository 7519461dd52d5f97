/** Headless Chromium with an hls.js player. */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { requireProgram } from '../../../scripts/ensure-tools.ts';
import { CLOCK_BITS, CLOCK_CELL, clockDelay } from './burnt-clock.ts';
import { until } from './poll.ts';

const CHROMIUM_ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
  '--autoplay-policy=no-user-gesture-required',
];

/** What the page tells about its player. */
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
  /** EXT-X-PROGRAM-DATE-TIME of the picture on show, ms since the epoch. */
  readonly programDate: number | null;
  readonly level: number;
  readonly playing: boolean;
  /** Times playback ran dry after it had begun. */
  readonly stalls: number;
  /** Times the page began again after a fatal error. */
  readonly restarts: number;
  /** From loading the page to the first picture. */
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

  /** Milliseconds from encoder to screen, read from the burnt-in clock; null without a picture. */
  async delay(): Promise<number | null> {
    const clock: { ticks: number; seenAt: number } | null = await this.page.evaluate('player.clock()');
    return clock === null ? null : clockDelay(clock.ticks, clock.seenAt);
  }

  /** Waits until `seconds` more of video have been played. */
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

/** A browser and the little web server of its player page. Whoever made it closes it. */
export class PlayerBrowser {
  readonly #browser: Browser;
  readonly #server: Server;

  constructor(browser: Browser, server: Server) {
    this.#browser = browser;
    this.#server = server;
  }

  /**
   * Opens a page that plays `url` with hls.js in low-latency mode. `catchUpRate` is how fast it may play while it is
   * too far behind live; 1, hls.js's own setting, never catches up.
   */
  async play(url: string, catchUpRate = 1.5): Promise<HlsPlayer> {
    const page = await this.#browser.newPage({ viewport: { width: 640, height: 360 } });
    const { port } = this.#server.address() as AddressInfo;
    const query = new URLSearchParams({ src: url, cells: `${CLOCK_BITS}`, cell: `${CLOCK_CELL}`, rate: `${catchUpRate}` });
    await page.goto(`http://127.0.0.1:${port}/?${query}`);
    return new HlsPlayer(page);
  }

  async close(): Promise<void> {
    await this.#browser.close();
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

export async function openBrowser(): Promise<PlayerBrowser> {
  const server = await servePlayer();
  const browser = await chromium.launch({ executablePath: requireProgram('chromium'), headless: true, args: CHROMIUM_ARGUMENTS });
  return new PlayerBrowser(browser, server);
}

/** Serves the player page at `/` and hls.js beside it. */
async function servePlayer(): Promise<Server> {
  const page = readFileSync(path.join(import.meta.dirname, 'player.html'));
  const library = readFileSync(createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js'));
  const server = createServer((request, response) => {
    const isLibrary = request.url === '/hls.js';
    response.writeHead(200, { 'content-type': isLibrary ? 'text/javascript' : 'text/html' });
    response.end(isLibrary ? library : page);
  });
  return await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}
