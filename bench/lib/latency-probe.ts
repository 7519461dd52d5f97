/** A stream received over RTMP and one viewer over WebRTC, for any duration: the delay of each frame. */
import { setTimeout as delay } from 'node:timers/promises';
import type WebSocket from 'ws';
import { type ReceivedPacket, WebrtcViewer } from '../../test/fakes/webrtc-viewer.ts';
import { until } from '../../test/harness/poll.ts';
import type { TestServer } from '../../test/harness/server.ts';
import { RtmpSender } from './rtmp-sender.ts';
import { type FlvTag, readFlv, SOURCE_FPS, SOURCE_GOP_SECONDS, SOURCE_SECONDS, sourceFile } from './source.ts';
import { watch } from './webrtc-watch.ts';

const RTP_TICKS_PER_MS = 90;
/** Media, in seconds, before the viewer connects. */
const WARM_UP_SECONDS = 3;

interface Arrival {
  readonly timestamp: number;
  readonly at: number;
}

/** Measurements of a window. */
export interface ProbeWindow {
  /** Delay of each frame from its last sent byte to its last received packet, ms. */
  readonly delays: readonly number[];
  /** Frames that were sent but not received. */
  readonly missing: number;
}

/** The caller of `open` closes it. */
export class LatencyProbe {
  readonly #sender: RtmpSender;
  readonly #stopped = new AbortController();
  #viewer: WebrtcViewer | null = null;
  #socket: WebSocket | null = null;
  #ssrc = 0;
  readonly #arrivals: Arrival[] = [];
  /** Media time of the first received frame, ms. */
  #base = 0;

  private constructor(sender: RtmpSender) {
    this.#sender = sender;
  }

  /** Publishes `stream` in the application `app` for at most `seconds` and begins to watch it. */
  static async open(server: TestServer, stream: string, seconds: number): Promise<LatencyProbe> {
    const sender = await RtmpSender.open(server.ports.rtmp, 'app', stream);
    const probe = new LatencyProbe(sender);
    await probe.#start(server, stream, looped(readFlv(await sourceFile()), seconds));
    return probe;
  }

  async #start(server: TestServer, stream: string, tags: readonly FlvTag[]): Promise<void> {
    void this.#sender.send(tags, this.#stopped.signal);
    await until('media to be sent', () => this.#sender.frames.length > WARM_UP_SECONDS * SOURCE_FPS);
    const viewer = new WebrtcViewer({ onPacket: (packet) => this.#onPacket(viewer, packet) });
    this.#viewer = viewer;
    const { ssrc, socket } = await watch(server.http(stream, '').replace('http', 'ws').replace(/\/$/, ''), viewer);
    this.#ssrc = ssrc;
    this.#socket = socket;
    await until('frames to arrive', () => this.#arrivals.length > 0);
    // The first frame to arrive is the last keyframe sent.
    const [first] = this.#arrivals;
    const gop = SOURCE_FPS * SOURCE_GOP_SECONDS;
    this.#base = this.#sender.frames.filter(({ sentAt }, n) => n % gop === 0 && sentAt <= (first?.at ?? 0)).at(-1)?.timestamp ?? 0;
  }

  #onPacket(viewer: WebrtcViewer, packet: ReceivedPacket): void {
    // Unused, so memory is freed.
    viewer.packets.length = 0;
    if (packet.marker && (this.#ssrc === 0 || packet.ssrc === this.#ssrc)) {
      this.#arrivals.push({ timestamp: packet.timestamp, at: performance.now() });
    }
  }

  /** Watches for `seconds`; the last half second is left out, because it may still be in transit. */
  async during(seconds: number): Promise<ProbeWindow> {
    const from = performance.now();
    await delay(seconds * 1000);
    const to = performance.now() - 500;
    await delay(500);
    const [first] = this.#arrivals;
    const late = new Map<number, number>();
    for (const { timestamp, at } of this.#arrivals) {
      const mediaTime = this.#base + ((timestamp - (first?.timestamp ?? 0)) >>> 0) / RTP_TICKS_PER_MS;
      const frame = this.#sender.frames[this.#indexOf(mediaTime)];
      if (frame !== undefined && frame.sentAt >= from && frame.sentAt < to) late.set(frame.timestamp, at - frame.sentAt);
    }
    const sent = this.#sender.frames.filter(({ sentAt }) => sentAt >= from && sentAt < to).length;
    return { delays: [...late.values()], missing: sent - late.size };
  }

  /** Index of the frame whose media time is nearest. */
  #indexOf(mediaTime: number): number {
    const { frames } = this.#sender;
    let low = 0;
    let high = frames.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((frames[middle]?.timestamp ?? 0) < mediaTime) low = middle + 1;
      else high = middle;
    }
    const [before, at] = [frames[low - 1], frames[low]];
    return before !== undefined && at !== undefined && mediaTime - before.timestamp < at.timestamp - mediaTime ? low - 1 : low;
  }

  close(): void {
    this.#stopped.abort();
    this.#socket?.close();
    this.#viewer?.close();
    this.#sender.close();
  }
}

/** The tags in a loop, with continuing times. */
function looped(tags: readonly FlvTag[], seconds: number): FlvTag[] {
  const all: FlvTag[] = [];
  for (let start = 0; start < seconds; start += SOURCE_SECONDS) {
    for (const tag of tags) all.push({ ...tag, timestamp: tag.timestamp + start * 1000 });
  }
  return all;
}
