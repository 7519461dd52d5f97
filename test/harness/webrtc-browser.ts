/** Headless Chromium that plays and publishes over WebRTC: our own pages, OvenPlayer and OvenLiveKit. */
import type { Page } from 'playwright-core';
import { PageBrowser } from './page-browser.ts';
import { until } from './poll.ts';

const SIZE = { width: 640, height: 720 };
const SWITCHES = ['--allow-loopback-in-peer-connection', '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'];

/** Values of `getStats()`; counters since the beginning of the connection. */
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
  /** Protocol of the used candidate pair. */
  readonly pair: 'udp' | 'tcp' | null;
  /** Server address of that pair. */
  readonly server: string | null;
  /** Protocol between the page and the TURN relay; null without a relay. */
  readonly relay: string | null;
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

/** Values of `getStats()` for each stream or simulcast layer. */
export interface OutboundStats {
  readonly kind: string;
  readonly rid?: string;
  readonly framesEncoded?: number;
  readonly keyFramesEncoded?: number;
  readonly packetsSent: number;
  readonly nackCount?: number;
  readonly pliCount?: number;
  readonly retransmittedPacketsSent?: number;
  readonly targetBitrate?: number;
  readonly frameWidth?: number;
  readonly frameHeight?: number;
  readonly codec?: string;
}

/** `tcp`, `udp6`: uses only such candidates of the server; a number: port of a UDP relay in front of the server; null: all. */
export type CandidatePath = 'tcp' | 'udp6' | number | null;

export interface WhipOptions {
  /** Preferred video codec; default `H264`. */
  readonly codec?: string;
  readonly audio?: boolean;
  readonly path?: CandidatePath;
  /** Scale of each simulcast layer, e.g. `[1, 2]`. */
  readonly layers?: readonly number[];
  /** Bits per second. */
  readonly maxBitrate?: number;
}

/** One page; it may play once. */
export class WebrtcPage {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async whep(url: string, kinds: readonly string[] = ['video', 'audio'], path: CandidatePath = null): Promise<WhepAnswer> {
    return await this.page.evaluate(`playWhep(${JSON.stringify(url)}, ${JSON.stringify(kinds)}, ${JSON.stringify(path)})`);
  }

  /** Plays over the WebSocket protocol, through a relay at port `relay` in front of the server's port; returns the page's answer. */
  async socket(url: string, relay: number): Promise<string> {
    return await this.page.evaluate(`playSocket(${JSON.stringify(url)}, ${relay})`);
  }

  /** Publishes a fake camera and microphone by WHIP. */
  async whip(url: string, options: WhipOptions = {}): Promise<WhepAnswer> {
    return await this.page.evaluate(`publishWhip(${JSON.stringify(url)}, ${JSON.stringify(options)})`);
  }

  /** Publishes with the OvenLiveKit package. */
  async ovenLiveKit(url: string): Promise<void> {
    await this.page.evaluate(`publishOven(${JSON.stringify(url)})`);
  }

  /** Counters of the page's sent media. */
  async sent(): Promise<OutboundStats[]> {
    return await this.page.evaluate('sent()');
  }

  /** `parseStream`: reads the SEI in frames, for `metadata`. */
  async ovenPlayer(url: string, parseStream = false): Promise<void> {
    await this.page.evaluate(`playOven(${JSON.stringify(url)}, ${parseStream})`);
  }

  /** SEI in frames that OvenPlayer has reported so far. */
  async metadata(): Promise<Record<string, unknown>[]> {
    return await this.page.evaluate('state.metadata');
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

  /** Waits until `frames` frames have been decoded since the beginning. */
  async decoded(frames: number, deadlineMs = 20_000): Promise<PeerState & { readonly video: InboundStats }> {
    let last: PeerState | null = null;
    try {
      return await until(
        `${frames} decoded frames`,
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

/** Its creator closes it. */
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
  const scripts = { '/ovenplayer.js': 'ovenplayer/dist/ovenplayer.js', '/ovenlivekit.js': 'ovenlivekit/dist/OvenLiveKit.min.js' };
  return new WebrtcBrowser(await PageBrowser.start({ page: 'webrtc-player.html', scripts, switches: SWITCHES }));
}
