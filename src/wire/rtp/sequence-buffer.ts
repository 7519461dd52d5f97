/** Puts the packets of one source back into order, RFC 3550 §A.1. */
import type { RtpPacket } from './rtp-packet.ts';
import { sequenceDistance } from './rtp-packet.ts';

/** A step back or ahead of more than this is a new beginning of the source, not a loss. */
const MAX_STEP = 3000;
const DEFAULT_DEPTH = 64;

/** Packets since the source began. */
export interface SequenceCounters {
  received: number;
  lost: number;
  /** Packets that came twice, or after they had been given up. */
  late: number;
}

interface WaitingPacket {
  readonly packet: RtpPacket;
  readonly arrivedAt: number;
}

/**
 * Passes packets on in order. A gap is given up when `depth` packets have come behind it; depth 0 waits for nothing, which is right for a
 * connection that keeps the order.
 */
export class SequenceBuffer {
  readonly counters: SequenceCounters = { received: 0, lost: 0, late: 0 };
  readonly #depth: number;
  /** Waiting packets by sequence number, in their order of arrival. */
  readonly #waiting = new Map<number, WaitingPacket>();
  #expected = -1;
  #wraps = 0;

  constructor(depth = DEFAULT_DEPTH) {
    this.#depth = depth;
  }

  /** Last sequence number passed on, with its wraps in the upper 16 bits. */
  get highest(): number {
    return this.#expected < 0 ? 0 : (this.#wraps * 2 ** 16 + this.#expected - 1) >>> 0;
  }

  /** Gives up the missing packets before those that arrived at `time` or earlier. */
  giveUp(time: number, sink: (packet: RtpPacket, lost: boolean) => void): void {
    while (this.#waitingSince <= time) this.#skip(sink);
  }

  /** `sink` gets every packet whose turn it is; `lost` says that packets before it are missing. `arrivedAt` is for `giveUp`. */
  push(packet: RtpPacket, arrivedAt: number, sink: (packet: RtpPacket, lost: boolean) => void): void {
    this.counters.received += 1;
    if (this.#expected < 0) this.#expected = packet.sequence;
    const ahead = sequenceDistance(this.#expected, packet.sequence);
    if (Math.abs(ahead) > MAX_STEP) {
      this.#waiting.clear();
      this.#deliver(packet, true, sink);
    } else if (ahead < 0 || this.#waiting.has(packet.sequence)) {
      this.counters.late += 1;
    } else if (ahead === 0) {
      this.#deliver(packet, false, sink);
      this.#release(sink);
    } else {
      this.#waiting.set(packet.sequence, { packet, arrivedAt });
      if (this.#waiting.size > this.#depth) this.#skip(sink);
    }
  }

  /** Arrival of the oldest waiting packet; infinite for none. */
  get #waitingSince(): number {
    const [oldest] = this.#waiting.values();
    return oldest?.arrivedAt ?? Number.POSITIVE_INFINITY;
  }

  /** Gives up the gap: continues with the first packet behind it. */
  #skip(sink: (packet: RtpPacket, lost: boolean) => void): void {
    let nearest: RtpPacket | null = null;
    let least = MAX_STEP + 1;
    for (const { packet } of this.#waiting.values()) {
      const ahead = sequenceDistance(this.#expected, packet.sequence);
      if (ahead < least) {
        least = ahead;
        nearest = packet;
      }
    }
    if (nearest === null) return;
    this.counters.lost += least;
    this.#waiting.delete(nearest.sequence);
    this.#deliver(nearest, true, sink);
    this.#release(sink);
  }

  #release(sink: (packet: RtpPacket, lost: boolean) => void): void {
    for (let next = this.#waiting.get(this.#expected); next !== undefined; next = this.#waiting.get(this.#expected)) {
      this.#waiting.delete(next.packet.sequence);
      this.#deliver(next.packet, false, sink);
    }
  }

  #deliver(packet: RtpPacket, lost: boolean, sink: (packet: RtpPacket, lost: boolean) => void): void {
    this.#expected = (packet.sequence + 1) & 0xff_ff;
    if (this.#expected === 0) this.#wraps += 1;
    sink(packet, lost);
  }
}
