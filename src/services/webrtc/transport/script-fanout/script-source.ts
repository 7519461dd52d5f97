/** A source of the fanout in JavaScript: paces large frames, remembers packets, knows who plays it. */
import type { PacketizedFrame, SourcePlan } from '../fanout/fanout.ts';
import { makeParities, type Parity } from './parity.ts';
import type { ScriptViewer } from './script-viewer.ts';

/** Keyframes leave in slices of this many packets, so that they do not flood a downlink's queue. */
const SLICE_PACKETS = 24;
const SLICE_GAP_MS = 3;
/** However long the frame is, its last slice leaves this many slices after the first. */
const MAX_SLICES = 8;
/** Frames that may wait; beyond, the source skips to the next keyframe. */
const PENDING_FRAMES = 120;

/** A frame that has its place in the stream. */
export class SourceFrame {
  readonly firstSequence: number;
  readonly timestamp: number;
  readonly keyframe: boolean;
  readonly marker: boolean;
  readonly packets: number;
  /** Sent behind the packets, to those who take error correction. */
  readonly parities: readonly Parity[];
  /** Number of the first packet where parities are counted too. */
  readonly firstProtected: number;
  readonly #payloads: Uint8Array;
  readonly #offsets: Uint32Array;

  constructor(frame: PacketizedFrame, place: { readonly sequence: number; readonly protectedSequence: number; readonly fec: boolean }) {
    this.firstSequence = place.sequence;
    this.firstProtected = place.protectedSequence;
    this.timestamp = frame.timestamp;
    this.keyframe = frame.keyframe;
    this.marker = frame.marker;
    this.packets = frame.sizes.length;
    this.#payloads = frame.payloads.slice();
    this.#offsets = new Uint32Array(this.packets + 1);
    frame.sizes.forEach((size, n) => {
      this.#offsets[n + 1] = (this.#offsets[n] ?? 0) + size;
    });
    const payloads = place.fec ? Array.from({ length: this.packets }, (_unused, n) => this.payload(n)) : [];
    this.parities = makeParities(payloads, frame.marker);
  }

  payload(packet: number): Uint8Array {
    return this.#payloads.subarray(this.#offsets[packet], this.#offsets[packet + 1]);
  }
}

type KeptPacket = { readonly frame: SourceFrame; readonly packet: number } | undefined;

/** Made and closed by the fanout. Frames that come faster than they leave are dropped up to the next keyframe, and counted. */
export class ScriptSource {
  readonly viewers = new Set<ScriptViewer>();
  /** Get it from its next keyframe on. */
  readonly joining = new Set<ScriptViewer>();
  droppedFrames = 0;
  readonly #clockRate: number;
  readonly #epochMs: number;
  readonly #history: KeptPacket[];
  /** By numbers that count parities too; empty where there are none. */
  readonly #protectedHistory: KeptPacket[];
  readonly #fec: boolean;
  readonly #pending: SourceFrame[] = [];
  #cursor = 0;
  #nextSequence = 0;
  #nextProtected = 0;
  #skipping = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: SourcePlan & { readonly history: number }) {
    this.#clockRate = options.clockRate;
    this.#epochMs = options.epochMs;
    this.#fec = options.fec ?? false;
    this.#history = new Array(options.history);
    this.#protectedHistory = new Array(this.#fec ? options.history : 0);
  }

  /** RTP timestamp of a moment of the wall clock, 32 bits. */
  timestampAt(wallMs: number): number {
    const ticks = Math.floor(((wallMs - this.#epochMs) * this.#clockRate) / 1000);
    return ((ticks % 2 ** 32) + 2 ** 32) % 2 ** 32;
  }

  /** The packet with this number of the source; undefined when it is forgotten. `fec`: the number counts parities too. */
  recall(sequence: number, fec: boolean): KeptPacket {
    const history = fec && this.#fec ? this.#protectedHistory : this.#history;
    const kept = history[sequence % history.length];
    if (kept === undefined) return undefined;
    return (fec ? kept.frame.firstProtected : kept.frame.firstSequence) + kept.packet === sequence ? kept : undefined;
  }

  push(packetized: PacketizedFrame): void {
    const place = { sequence: this.#nextSequence, protectedSequence: this.#nextProtected, fec: this.#fec };
    const frame = new SourceFrame(packetized, place);
    this.#nextSequence += frame.packets;
    this.#nextProtected += frame.packets + frame.parities.length;
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
      const slice = Math.max(SLICE_PACKETS, Math.ceil(frame.packets / MAX_SLICES));
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
      const protectedPackets = this.#fec ? frame.packets + frame.parities.length : 0;
      for (let packet = 0; packet < protectedPackets; packet += 1) {
        this.#protectedHistory[(frame.firstProtected + packet) % length] = { frame, packet };
      }
    }
    if (!frame.keyframe) return;
    const joining = [...this.joining];
    this.joining.clear();
    for (const viewer of joining) viewer.join(this, frame);
  }
}
