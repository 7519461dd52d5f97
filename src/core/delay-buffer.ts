/** Delays the packets of a stream before its outputs (`Publishers/DelayBufferTimeMs`). */

import type { Packet } from '../media/packet.ts';
import { isVideoTrack } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import { guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';

/** Limits of one stream. */
const MAX_BYTES = 256 * 1024 * 1024;
const MAX_ENTRIES = 200_000;
/** Minimum time between two checks of what is due, ms: frames that arrive together leave together. */
const MIN_WAIT_MS = 5;
/**
 * Packets and bytes released at once when a stream has ended. At intervals of 5 ms, 256 MiB leave within seconds, as fast as a disk can
 * write.
 */
const REST_PACKETS = 256;
const REST_BYTES = 256 * 1024;
/** Released entries at the head of the arrays before the rest is moved forward. */
const COMPACT_FROM = 1024;

const UNLIMITED = { packets: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };

/** Where packets go when their time has come. */
export interface DelayBufferOptions {
  readonly delayMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** `arrivedAt`: wall clock, ms, of when the packet came. */
  readonly onPacket: (packet: Packet, arrivedAt: number) => void;
  /** All due packets have been passed on. */
  readonly onReleased: () => void;
  /** A receiver threw: no further packets are released. */
  readonly onFault: (error: unknown) => void;
  /** Default: 256 MiB. */
  readonly maxBytes?: number;
}

/**
 * Releases packets in order, each `delayMs` after its arrival. When full, it drops incoming packets, of a video track up to the next
 * keyframe that fits, so the rest can be decoded. It releases nothing early, because viewers rely on the delay. The owner closes it.
 */
export class DelayBuffer {
  /** Packets that found no room. */
  dropped = 0;
  readonly #options: DelayBufferOptions;
  readonly #maxBytes: number;
  #entries: (Packet | (() => void) | null)[] = [];
  /** When each entry came: monotonic and wall clock, ms. */
  #times: number[] = [];
  #walls: number[] = [];
  #head = 0;
  #bytes = 0;
  /** Video tracks with a dropped packet, until a keyframe fits. */
  readonly #broken = new Set<number>();
  #timer: NodeJS.Timeout | undefined;
  /** Called when the rest has been passed on. */
  #onRest: (() => void) | null = null;
  #closed = false;
  readonly #turn: () => void;
  readonly #restTurn: () => void;

  constructor(options: DelayBufferOptions) {
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? MAX_BYTES;
    this.#turn = guarded(options.logger, 'the delay of a stream', () => {
      this.#timer = undefined;
      this.#release(options.clock.monotonic() - options.delayMs);
    });
    this.#restTurn = guarded(options.logger, 'the rest of a delayed stream', () => this.#handOnRest());
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  push(packet: Packet): void {
    if (this.#closed) return;
    const { track, keyframe, data } = packet;
    const isFull = this.#bytes + data.length > this.#maxBytes || this.#entries.length - this.#head >= MAX_ENTRIES;
    if (isFull || (this.#broken.has(track.id) && !keyframe)) {
      this.#drop(packet);
      return;
    }
    if (this.#broken.size > 0) this.#broken.delete(track.id);
    this.#bytes += data.length;
    this.#add(packet);
  }

  /** Calls `change` once all earlier packets have been passed on. */
  defer(change: () => void): void {
    if (!this.#closed) this.#add(change);
  }

  /**
   * Passes on the rest in turns, and calls `done` after it, unless `flush` or `close` comes first. False: so little waits that `flush` is
   * cheap.
   */
  settle(done: () => void): boolean {
    if (this.#closed || (this.#entries.length - this.#head <= REST_PACKETS && this.#bytes <= REST_BYTES)) return false;
    clearTimeout(this.#timer);
    this.#onRest = done;
    this.#timer = setTimeout(this.#restTurn, 0);
    return true;
  }

  /** Hands everything on now. Throws exceptions of the receivers. */
  flush(): void {
    if (!this.#closed) this.#handOn(Number.POSITIVE_INFINITY);
  }

  /** Drops all waiting packets. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#onRest = null;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#entries = [];
    this.#times = [];
    this.#walls = [];
    this.#head = 0;
    this.#bytes = 0;
  }

  #add(entry: Packet | (() => void)): void {
    const { clock, delayMs } = this.#options;
    this.#entries.push(entry);
    this.#times.push(clock.monotonic());
    this.#walls.push(clock.now());
    if (this.#timer === undefined) this.#timer = setTimeout(this.#turn, delayMs);
  }

  #drop({ track }: Packet): void {
    this.dropped += 1;
    if (this.dropped === 1) {
      const detail = 'the delay buffer of the stream is full: packets are dropped (DelayBufferTimeMs)';
      this.#options.logger.warn({ bytes: this.#bytes, entries: this.#entries.length - this.#head }, detail);
    }
    if (isVideoTrack(track)) this.#broken.add(track.id);
  }

  #release(before: number): void {
    try {
      this.#handOn(before);
    } catch (error) {
      this.close();
      this.#options.onFault(error);
      return;
    }
    const next = this.#times[this.#head];
    if (this.#closed || next === undefined || this.#timer !== undefined) return;
    this.#timer = setTimeout(this.#turn, Math.max(MIN_WAIT_MS, Math.ceil(next - before)));
  }

  #handOnRest(): void {
    this.#timer = undefined;
    try {
      this.#handOn(Number.POSITIVE_INFINITY, { packets: REST_PACKETS, bytes: REST_BYTES });
    } catch (error) {
      this.close();
      this.#options.onFault(error);
      return;
    }
    const done = this.#onRest;
    if (done === null) return;
    if (this.#head < this.#entries.length) this.#timer = setTimeout(this.#restTurn, MIN_WAIT_MS);
    else {
      this.#onRest = null;
      done();
    }
  }

  /** Releases packets that arrived before `before`, at most `most` of them. */
  #handOn(before: number, most = UNLIMITED): void {
    let isAny = false;
    let { packets, bytes } = most;
    for (let at = this.#times[this.#head]; at !== undefined && at <= before; at = this.#times[this.#head]) {
      if (packets <= 0 || bytes <= 0) break;
      const entry = this.#entries[this.#head] ?? null;
      const arrivedAt = this.#walls[this.#head] ?? 0;
      this.#entries[this.#head] = null;
      this.#head += 1;
      isAny = true;
      packets -= 1;
      if (typeof entry === 'function') entry();
      else if (entry !== null) {
        this.#bytes -= entry.data.length;
        bytes -= entry.data.length;
        this.#options.onPacket(entry, arrivedAt);
      }
    }
    this.#compact();
    if (isAny) this.#options.onReleased();
  }

  #compact(): void {
    if (this.#head < COMPACT_FROM && this.#head < this.#entries.length) return;
    this.#entries.splice(0, this.#head);
    this.#times.splice(0, this.#head);
    this.#walls.splice(0, this.#head);
    this.#head = 0;
  }
}
