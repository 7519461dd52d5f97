/** A source of the fanout in JavaScript: paces large frames, knows who plays it. */
import type { PacketizedFrame, SourcePlan } from '../fanout/fanout.ts';

/** Keyframes leave in slices of this many packets, so that they do not flood a downlink's queue. */
const SLICE_PACKETS = 24;
/** A downlink's queue has room for this many packets at the beginning of a frame, so their slices follow each other sooner. */
const QUICK_PACKETS = 72;
const QUICK_GAP_MS = 1;
const SLICE_GAP_MS = 3;
/** Maximum of slices of a frame, however long the frame is. */
const MAX_SLICES = 8;
/** Frames that may wait; beyond, the source skips to the next keyframe. */
const MAX_PENDING_FRAMES = 120;

/** A frame with bytes of its own. */
export class SourceFrame {
  readonly timestamp: number;
  readonly keyframe: boolean;
  readonly marker: boolean;
  readonly packets: number;
  readonly #payloads: Uint8Array;
  readonly #offsets: Uint32Array;

  constructor({ timestamp, keyframe, marker, payloads, sizes }: PacketizedFrame) {
    this.timestamp = timestamp;
    this.keyframe = keyframe;
    this.marker = marker;
    this.packets = sizes.length;
    this.#payloads = payloads.slice();
    this.#offsets = new Uint32Array(this.packets + 1);
    sizes.forEach((size, n) => {
      this.#offsets[n + 1] = (this.#offsets[n] ?? 0) + size;
    });
  }

  payload(packet: number): Uint8Array {
    return this.#payloads.subarray(this.#offsets[packet], this.#offsets[packet + 1]);
  }
}

/** A viewer as its source sees it. */
interface SourceReader {
  /** A keyframe begins: a waiting viewer takes the source from here. */
  join(source: ScriptSource, frame: SourceFrame): void;
  /** Sends the packets from `first` to before `last`. */
  send(source: ScriptSource, frame: SourceFrame, first: number, last: number): void;
  /** The source has ended. */
  leave(source: ScriptSource): void;
}

/** Made and closed by the fanout. Frames that come faster than they leave are dropped up to the next keyframe, and counted. */
export class ScriptSource {
  readonly viewers = new Set<SourceReader>();
  /** Viewers that get it from its next keyframe on. */
  readonly joining = new Set<SourceReader>();
  droppedFrames = 0;
  readonly #clockRate: number;
  readonly #epochMs: number;
  readonly #pending: SourceFrame[] = [];
  #cursor = 0;
  #skipping = false;
  #timer: NodeJS.Timeout | null = null;

  constructor({ clockRate, epochMs }: SourcePlan) {
    this.#clockRate = clockRate;
    this.#epochMs = epochMs;
  }

  /** RTP timestamp of a moment of the wall clock, 32 bits. */
  timestampAt(wallMs: number): number {
    const ticks = Math.floor(((wallMs - this.#epochMs) * this.#clockRate) / 1000);
    return ((ticks % 2 ** 32) + 2 ** 32) % 2 ** 32;
  }

  push(packetized: PacketizedFrame): void {
    const frame = new SourceFrame(packetized);
    if (this.#pending.length >= MAX_PENDING_FRAMES) {
      this.droppedFrames += this.#pending.length - 1;
      this.#pending.length = 1;
      this.#skipping = true;
    }
    if (this.#skipping && !frame.keyframe) {
      this.droppedFrames += 1;
      return;
    }
    this.#skipping = false;
    this.#pending.push(frame);
    if (this.#timer === null) this.#run();
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#pending.length = 0;
    for (const viewer of [...this.viewers, ...this.joining]) viewer.leave(this);
    this.viewers.clear();
    this.joining.clear();
  }

  #run(): void {
    this.#timer = null;
    for (let frame = this.#pending[0]; frame !== undefined; frame = this.#pending[0]) {
      if (this.#cursor === 0 && frame.keyframe) this.#begin(frame);
      const slice = Math.max(SLICE_PACKETS, Math.ceil(frame.packets / MAX_SLICES));
      const last = Math.min(frame.packets, this.#cursor + slice);
      for (const viewer of this.viewers) viewer.send(this, frame, this.#cursor, last);
      const whole = last === frame.packets;
      this.#cursor = whole ? 0 : last;
      if (whole) this.#pending.shift();
      if (frame.packets > slice && this.#pending.length < MAX_PENDING_FRAMES / 4) {
        this.#timer = setTimeout(() => this.#run(), last < QUICK_PACKETS ? QUICK_GAP_MS : SLICE_GAP_MS);
        return;
      }
    }
  }

  /** Waiting viewers get the source from this keyframe on. */
  #begin(keyframe: SourceFrame): void {
    const joining = [...this.joining];
    this.joining.clear();
    for (const viewer of joining) viewer.join(this, keyframe);
  }
}
