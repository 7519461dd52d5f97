/** A source of the fanout in JavaScript: paces large frames, remembers packets, knows who plays it. */
import type { PacketizedFrame } from './fanout.ts';
import type { ScriptViewer } from './script-viewer.ts';

/** Keyframes leave in slices of this many packets, so that they do not flood a downlink's queue. */
const SLICE_PACKETS = 24;
const SLICE_GAP_MS = 3;
/** However long the frame is, its last slice leaves this many slices after the first. */
const MOST_SLICES = 8;
/** Frames that may wait; beyond, the source skips to the next keyframe. */
const PENDING_FRAMES = 120;

/** A frame that has its place in the stream. */
export class SourceFrame {
  readonly firstSequence: number;
  readonly timestamp: number;
  readonly keyframe: boolean;
  readonly marker: boolean;
  readonly packets: number;
  readonly #payloads: Uint8Array;
  readonly #offsets: Uint32Array;

  constructor(frame: PacketizedFrame, firstSequence: number) {
    this.firstSequence = firstSequence;
    this.timestamp = frame.timestamp;
    this.keyframe = frame.keyframe;
    this.marker = frame.marker;
    this.packets = frame.sizes.length;
    this.#payloads = frame.payloads.slice();
    this.#offsets = new Uint32Array(this.packets + 1);
    frame.sizes.forEach((size, n) => {
      this.#offsets[n + 1] = (this.#offsets[n] ?? 0) + size;
    });
  }

  payload(packet: number): Uint8Array {
    return this.#payloads.subarray(this.#offsets[packet], this.#offsets[packet + 1]);
  }
}

export class ScriptSource {
  readonly viewers = new Set<ScriptViewer>();
  /** Get it from its next keyframe on. */
  readonly joining = new Set<ScriptViewer>();
  droppedFrames = 0;
  readonly #clockRate: number;
  readonly #epochMs: number;
  readonly #history: ({ readonly frame: SourceFrame; readonly packet: number } | undefined)[];
  readonly #pending: SourceFrame[] = [];
  #cursor = 0;
  #nextSequence = 0;
  #skipping = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: { readonly clockRate: number; readonly epochMs: number; readonly history: number }) {
    this.#clockRate = options.clockRate;
    this.#epochMs = options.epochMs;
    this.#history = new Array(options.history);
  }

  /** RTP timestamp of a moment of the wall clock, 32 bits. */
  timestampAt(wallMs: number): number {
    const ticks = Math.floor(((wallMs - this.#epochMs) * this.#clockRate) / 1000);
    return ((ticks % 2 ** 32) + 2 ** 32) % 2 ** 32;
  }

  /** The packet with this number of the source; undefined when it is forgotten. */
  recall(sequence: number): { readonly frame: SourceFrame; readonly packet: number } | undefined {
    const kept = this.#history[sequence % this.#history.length];
    return kept !== undefined && kept.frame.firstSequence + kept.packet === sequence ? kept : undefined;
  }

  push(packetized: PacketizedFrame): void {
    const frame = new SourceFrame(packetized, this.#nextSequence);
    this.#nextSequence += frame.packets;
    if (this.#pending.length >= PENDING_FRAMES) {
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
      if (this.#cursor === 0) this.#begin(frame);
      const slice = Math.max(SLICE_PACKETS, Math.ceil(frame.packets / MOST_SLICES));
      const last = Math.min(frame.packets, this.#cursor + slice);
      for (const viewer of this.viewers) viewer.send(this, frame, this.#cursor, last);
      const whole = last === frame.packets;
      this.#cursor = whole ? 0 : last;
      if (whole) this.#pending.shift();
      if (frame.packets > slice && this.#pending.length < PENDING_FRAMES / 4) {
        this.#timer = setTimeout(() => this.#run(), SLICE_GAP_MS);
        return;
      }
    }
  }

  #begin(frame: SourceFrame): void {
    const { length } = this.#history;
    if (length > 0) {
      for (let packet = 0; packet < frame.packets; packet += 1) {
        this.#history[(frame.firstSequence + packet) % length] = { frame, packet };
      }
    }
    if (!frame.keyframe) return;
    const joining = [...this.joining];
    this.joining.clear();
    for (const viewer of joining) viewer.join(this, frame);
  }
}
