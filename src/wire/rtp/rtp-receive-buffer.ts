/** Puts the packets of one source back into order and says which to ask for again, RFC 3550 §A.1 and RFC 4585 §6.2.1. */
import type { RtpPacket } from './rtp-packet.ts';
import { sequenceDistance } from './rtp-packet.ts';

/** A step back or ahead of more than this is a new beginning of the source, not a loss. */
const MAX_STEP = 3000;
/** First index, greater than 0 because packets that were overtaken by the first need indices, too. */
const FIRST_INDEX = 0x1_00_00;
/** Packets behind a gap that are kept for the missing ones, a second of a large stream. Beyond that the gap is given up. */
const MAX_WAITING = 1500;
/** Limit of missing packets to wait for; more at once mean a broken path, and requests would make it worse. */
const MAX_MISSING = 500;
/** Packets overtake each other by less than this, ms: no packet is requested sooner. */
const REORDER_MS = 10;
const MAX_REQUESTS = 10;
/** Round trip while none was measured, ms. */
const USUAL_ROUND_TRIP = 100;
const MAX_ROUND_TRIP = 1000;
const MIN_WAIT = 150;
const MAX_WAIT = 700;
/** Wait for reordered packets if lost packets are not retransmitted, ms. */
const REORDER_WAIT = 60;

const NOTHING: readonly number[] = [];

/** Packets since the source began. */
export interface ReceiveCounters {
  received: number;
  /** Packets given up. */
  lost: number;
  /** Packets that came twice, or after they had been given up. */
  late: number;
  /** Packets that arrived after a request. */
  recovered: number;
  /** Requested packets, repeated requests included. */
  requested: number;
}

interface Missing {
  readonly since: number;
  askedAt: number;
  asked: number;
}

/** Takes packets in order; `lost`: packets before this one are missing. */
export type RtpPacketSink = (packet: RtpPacket, lost: boolean) => void;

/**
 * Passes packets on in order, at once where none is missing. Waits for missing packets as long as a retransmission can help; `lost` marks a
 * packet after a gap.
 */
export class RtpReceiveBuffer {
  readonly counters: ReceiveCounters = { received: 0, lost: 0, late: 0, recovered: 0, requested: 0 };
  readonly #repeats: boolean;
  /** Packets by index, which is the sequence number without wraps. */
  readonly #waiting = new Map<number, RtpPacket>();
  /** Oldest first. */
  readonly #missing = new Map<number, Missing>();
  #next = -1;
  #highest = -1;
  #roundTrip: number | null = null;
  #repeated = 0;

  /** `repeats`: the sender retransmits packets on request. */
  constructor({ repeats }: { readonly repeats: boolean }) {
    this.#repeats = repeats;
  }

  /** Highest sequence number seen, with its wraps in the upper 16 bits. */
  get highest(): number {
    return Math.max(0, this.#highest - FIRST_INDEX) >>> 0;
  }

  /** Packets still expected. */
  get missing(): number {
    return this.#missing.size;
  }

  push(packet: RtpPacket, now: number, sink: RtpPacketSink): void {
    this.counters.received += 1;
    if (this.#next < 0) {
      this.#next = packet.sequence + FIRST_INDEX;
      this.#highest = this.#next - 1;
    }
    const ahead = sequenceDistance(this.#highest & 0xff_ff, packet.sequence);
    const index = this.#highest + ahead;
    if (Math.abs(ahead) > MAX_STEP) {
      this.#restart(packet, sink);
      return;
    }
    if (index < this.#next || this.#waiting.has(index)) {
      this.counters.late += 1;
      return;
    }
    this.#arrived(index, now);
    if (index === this.#next) {
      this.#deliver(packet, false, sink);
      this.#release(sink);
      return;
    }
    this.#waiting.set(index, packet);
    while (this.#waiting.size > MAX_WAITING || this.#missing.size > MAX_MISSING) this.#skip(sink);
  }

  /** Takes a retransmitted packet: it fills a gap, or is counted in `repeated`. */
  repeat(packet: RtpPacket, now: number, sink: RtpPacketSink): void {
    if (this.#next < 0) return;
    const index = this.#highest + sequenceDistance(this.#highest & 0xff_ff, packet.sequence);
    if (index > this.#highest || index < this.#next || this.#waiting.has(index)) this.#repeated += 1;
    else this.push(packet, now, sink);
  }

  /** Retransmitted packets that were not needed. */
  get repeated(): number {
    return this.#repeated;
  }

  /** Gives up packets that have been missing too long. Returns the numbers to request now, oldest first. Call it often. */
  check(now: number, sink: RtpPacketSink): readonly number[] {
    const timeoutScale = this.#timeoutScale;
    for (let oldest = this.#oldest; oldest !== null && now - oldest.since > timeoutScale; oldest = this.#oldest) this.#skip(sink);
    if (!this.#repeats || this.#missing.size === 0) return NOTHING;
    const wanted: number[] = [];
    const again = Math.max(REORDER_MS, (this.#roundTrip ?? USUAL_ROUND_TRIP) * 1.25);
    for (const [index, missing] of this.#missing) {
      if (missing.asked >= MAX_REQUESTS || now - missing.since < REORDER_MS) continue;
      if (missing.asked > 0 && now - missing.askedAt < again) continue;
      missing.asked += 1;
      missing.askedAt = now;
      wanted.push(index & 0xff_ff);
    }
    this.counters.requested += wanted.length;
    return wanted;
  }

  get #timeoutScale(): number {
    if (!this.#repeats) return REORDER_WAIT;
    return Math.min(MAX_WAIT, Math.max(MIN_WAIT, (this.#roundTrip ?? USUAL_ROUND_TRIP) * 4));
  }

  get #oldest(): Missing | null {
    for (const missing of this.#missing.values()) return missing;
    return null;
  }

  #arrived(index: number, now: number): void {
    if (index > this.#highest) {
      for (let gap = this.#highest + 1; gap < index; gap += 1) this.#missing.set(gap, { since: now, askedAt: 0, asked: 0 });
      this.#highest = index;
      return;
    }
    const missing = this.#missing.get(index);
    if (missing === undefined) return;
    this.#missing.delete(index);
    if (missing.asked === 0) return;
    this.counters.recovered += 1;
    // After several requests it is unknown which one was answered.
    if (missing.asked > 1) return;
    const measured = Math.min(MAX_ROUND_TRIP, now - missing.askedAt);
    this.#roundTrip = this.#roundTrip === null ? measured : this.#roundTrip + (measured - this.#roundTrip) / 8;
  }

  /** Gives up the first gap: continues with the first packet behind it. */
  #skip(sink: RtpPacketSink): void {
    while (this.#next <= this.#highest && !this.#waiting.has(this.#next)) {
      this.#missing.delete(this.#next);
      this.counters.lost += 1;
      this.#next += 1;
    }
    const packet = this.#waiting.get(this.#next);
    if (packet === undefined) return;
    this.#waiting.delete(this.#next);
    this.#deliver(packet, true, sink);
    this.#release(sink);
  }

  #release(sink: RtpPacketSink): void {
    for (let packet = this.#waiting.get(this.#next); packet !== undefined; packet = this.#waiting.get(this.#next)) {
      this.#waiting.delete(this.#next);
      this.#deliver(packet, false, sink);
    }
  }

  #deliver(packet: RtpPacket, lost: boolean, sink: RtpPacketSink): void {
    this.#next += 1;
    sink(packet, lost);
  }

  #restart(packet: RtpPacket, sink: RtpPacketSink): void {
    this.counters.lost += this.#missing.size;
    this.#waiting.clear();
    this.#missing.clear();
    this.#next = packet.sequence + FIRST_INDEX;
    this.#highest = this.#next;
    this.#deliver(packet, true, sink);
  }
}
