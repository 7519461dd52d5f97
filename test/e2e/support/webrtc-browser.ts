/** Headless Chromium that plays over WebRTC: a WHEP page of ours, and the OvenPlayer package. */
import type { Page } from 'playwright-core';
import { PageBrowser } from './page-browser.ts';
import { until } from './poll.ts';

const SIZE = { width: 640, height: 720 };

/** Of `getStats()`; counters since the connection began. */
export interface InboundStats {
  readonly packetsReceived: number;
  readonly packetsLost: number;
  readonly framesDecoded: number;
  readonly framesDropped: number;
  readonly freezeCount: number;
  readonly nackCount: number;
  readonly retransmittedPacketsReceived?: number;
  readonly frameWidth: number;
  readonly frameHeight: number;
  readonly totalAudioEnergy: number;
  readonly keyFramesDecoded: number;
}

export interface PeerState {
  readonly connection: string;
  /** Protocol of the pair in use. */
  readonly pair: 'udp' | 'tcp' | null;
  readonly srtp: string | null;
  readonly video?: InboundStats;
  readonly audio?: InboundStats;
  readonly errors: readonly string[];
}

export interface WhepAnswer {
  readonly location: string;
  readonly etag: string;
  readonly answer: string;
}

/** One page; it may play once. */
export class WebrtcPage {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  /** `path`: `tcp` for nothing but TCP, or the port of a relay in front of the server's. */
  async whep(url: string, kinds: readonly string[] = ['video', 'audio'], path: 'tcp' | number | null = null): Promise<WhepAnswer> {
    return await this.page.evaluate(`playWhep(${JSON.stringify(url)}, ${JSON.stringify(kinds)}, ${JSON.stringify(path)})`);
  }

  async ovenPlayer(url: string): Promise<void> {
    await this.page.evaluate(`playOven(${JSON.stringify(url)})`);
  }

  async stats(): Promise<PeerState> {
    return await this.page.evaluate('stats()');
  }

  /** Messages of the signalling server so far. */
  async messages(): Promise<Record<string, unknown>[]> {
    return await this.page.evaluate('state.messages');
  }

  async picture(): Promise<{ width: number; height: number; mean: number; variance: number } | null> {
    return await this.page.evaluate('picture()');
  }

  /** Waits until `frames` pictures have been decoded since the beginning. */
  async decoded(frames: number, deadlineMs = 20_000): Promise<PeerState & { readonly video: InboundStats }> {
    let last: PeerState | null = null;
    try {
      return await until(
        `${frames} decoded pictures`,
        async () => {
          last = await this.stats();
          return last.video !== undefined && last.video.framesDecoded >= frames ? { ...last, video: last.video } : null;
        },
        { deadlineMs, everyMs: 200 },
      );
    } catch (error) {
      throw new Error(`the player stayed at ${JSON.stringify(last)}`, { cause: error });
    }
  }
}

/** Whoever made it closes it. */
export class WebrtcBrowser {
  readonly #browser: PageBrowser;

  constructor(browser: PageBrowser) {
    this.#browser = browser;
  }

  async open(): Promise<WebrtcPage> {
    return new WebrtcPage(await this.#browser.open(SIZE));
  }

  close(): Promise<void> {
    return this.#browser.close();
  }
}

export async function openWebrtcBrowser(): Promise<WebrtcBrowser> {
  const scripts = { '/ovenplayer.js': 'ovenplayer/dist/ovenplayer.js' };
  return new WebrtcBrowser(
    await PageBrowser.start({ page: 'webrtc-player.html', scripts, switches: ['--allow-loopback-in-peer-connection'] }),
  );
}
