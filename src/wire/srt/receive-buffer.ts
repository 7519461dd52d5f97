/** Packets that have arrived and wait for their time, in order: a ring by sequence number. */
import type { LossRange } from './loss-list.ts';
import { addSequence, sequenceOffset } from './sequence.ts';

const INITIAL_CAPACITY = 256;

const MISSING = 0;
const PRESENT = 1;
/** The packet will never arrive, so the buffer does not wait for it. */
const GIVEN_UP = 2;

/** The result of inserting a packet. */
export type Insertion = 'inserted' | 'duplicate' | 'late' | 'too-far';

/** The buffer grows up to its limit. */
export class ReceiveBuffer {
  readonly #limit: number;
  #capacity: number;
  #payloads: (Uint8Array | null)[];
  #dueTimes: Float64Array;
  #states: Uint8Array;
  #first: number;
  /** Packets from `first` to the newest one, including missing packets. */
  #length = 0;
  /** Number of leading packets that are not missing. */
  #contiguous = 0;
  /** No packet before this one is held, which saves searching a gap in front for every datagram. */
  #head = 0;
  #missing = 0;
  #present = 0;

  /** `limit`: maximum of packets between the first and the newest, a power of two. */
  constructor(firstSequence: number, limit: number) {
    this.#limit = limit;
    this.#capacity = Math.min(INITIAL_CAPACITY, limit);
    this.#payloads = new Array<Uint8Array | null>(this.#capacity).fill(null);
    this.#dueTimes = new Float64Array(this.#capacity);
    this.#states = new Uint8Array(this.#capacity);
    this.#first = firstSequence;
  }

  /** The number after the newest one. */
  get end(): number {
    return addSequence(this.#first, this.#length);
  }

  /** Everything before this number has arrived or was given up: the number to acknowledge. */
  get acknowledged(): number {
    while (this.#contiguous < this.#length && this.#states[this.#slot(this.#contiguous)] !== MISSING) this.#contiguous += 1;
    return addSequence(this.#first, this.#contiguous);
  }

  /** Packets for which the buffer waits. */
  get missing(): number {
    return this.#missing;
  }

  /** Packets held. */
  get present(): number {
    return this.#present;
  }

  /** Time at which the next packet must be passed on, µs; infinite if none is held. */
  get nextDueTime(): number {
    return this.#present === 0 ? Number.POSITIVE_INFINITY : (this.#dueTimes[this.#slot(this.#nextPresent())] ?? 0);
  }

  /** Packets that still fit. */
  get available(): number {
    return this.#limit - this.#length;
  }

  /** False for a packet too far ahead. */
  reaches(sequence: number): boolean {
    return sequenceOffset(this.#first, sequence) < this.#limit;
  }

  /** Keeps `payload` until `dueTime` µs. Numbers skipped on the way count as missing from now on. */
  insert(sequence: number, payload: Uint8Array, dueTime: number): Insertion {
    const offset = sequenceOffset(this.#first, sequence);
    if (offset < 0) return 'late';
    if (offset >= this.#limit) return 'too-far';
    if (offset >= this.#length) {
      this.#extend(offset + 1);
    } else {
      const state = this.#states[this.#slot(offset)];
      if (state === PRESENT) return 'duplicate';
      if (state === GIVEN_UP) return 'late';
    }
    const slot = this.#slot(offset);
    this.#states[slot] = PRESENT;
    this.#payloads[slot] = payload;
    this.#dueTimes[slot] = dueTime;
    this.#head = Math.min(this.#head, offset);
    this.#missing -= 1;
    this.#present += 1;
    return 'inserted';
  }

  /** Continues at `sequence`, which is too far ahead, if no packet is held; returns the number of packets given up, or -1. */
  skipTo(sequence: number): number {
    if (this.#present > 0) return -1;
    const lost = sequenceOffset(this.#first, sequence) - this.#length + this.#missing;
    this.#states.fill(MISSING);
    this.#first = sequence;
    this.#length = 0;
    this.#contiguous = 0;
    this.#head = 0;
    this.#missing = 0;
    return lost;
  }

  /** Removes a useless packet, which is not expected again. */
  discard(sequence: number): void {
    const slot = sequence & (this.#capacity - 1);
    if (this.#states[slot] !== PRESENT) return;
    this.#states[slot] = GIVEN_UP;
    this.#payloads[slot] = null;
    this.#present -= 1;
  }

  /** Stops waiting for the missing packets of a range; returns their number. */
  giveUp({ first, last }: LossRange): number {
    const from = Math.max(0, sequenceOffset(this.#first, first));
    const to = Math.min(sequenceOffset(this.#first, last), this.#limit - 1);
    if (to < from) return 0;
    if (to >= this.#length) this.#extend(to + 1);
    let count = 0;
    for (let offset = from; offset <= to; offset += 1) {
      const slot = this.#slot(offset);
      if (this.#states[slot] !== MISSING) continue;
      this.#states[slot] = GIVEN_UP;
      count += 1;
    }
    this.#missing -= count;
    return count;
  }

  /** The missing packets from `from` on, at most `most` ranges. */
  missingRanges(from: number, most: number): LossRange[] {
    const ranges: LossRange[] = [];
    let start = -1;
    for (let offset = Math.max(0, sequenceOffset(this.#first, from)); offset < this.#length; offset += 1) {
      if (this.#states[this.#slot(offset)] === MISSING) {
        if (start < 0) start = offset;
      } else if (start >= 0) {
        ranges.push({ first: addSequence(this.#first, start), last: addSequence(this.#first, offset - 1) });
        start = -1;
        if (ranges.length === most) return ranges;
      }
    }
    if (start >= 0) ranges.push({ first: addSequence(this.#first, start), last: addSequence(this.#first, this.#length - 1) });
    return ranges;
  }

  /** Passes on all due packets in order; when a later packet is due, missing packets before it are given up. Returns their number. */
  release(now: number, onPayload: (payload: Uint8Array) => void): number {
    let lost = 0;
    while (this.#present > 0) {
      const offset = this.#nextPresent();
      const slot = this.#slot(offset);
      if ((this.#dueTimes[slot] ?? 0) > now) break;
      for (let skipped = 0; skipped < offset; skipped += 1) {
        const skippedSlot = this.#slot(skipped);
        if (this.#states[skippedSlot] === MISSING) lost += 1;
        this.#states[skippedSlot] = MISSING;
      }
      const payload = this.#payloads[slot] ?? null;
      this.#payloads[slot] = null;
      this.#states[slot] = MISSING;
      this.#present -= 1;
      this.#advance(offset + 1);
      if (payload !== null) onPayload(payload);
    }
    this.#missing -= lost;
    return lost;
  }

  #advance(count: number): void {
    this.#first = addSequence(this.#first, count);
    this.#length -= count;
    this.#contiguous = Math.max(0, this.#contiguous - count);
    this.#head = Math.max(0, this.#head - count);
  }

  /** Offset of the first packet held; there must be one. */
  #nextPresent(): number {
    while (this.#states[this.#slot(this.#head)] !== PRESENT) this.#head += 1;
    return this.#head;
  }

  #extend(length: number): void {
    while (length > this.#capacity) this.#grow();
    this.#missing += length - this.#length;
    this.#length = length;
  }

  #slot(offset: number): number {
    return (this.#first + offset) & (this.#capacity - 1);
  }

  #grow(): void {
    const old = { mask: this.#capacity - 1, payloads: this.#payloads, dueTimes: this.#dueTimes, states: this.#states };
    this.#capacity *= 2;
    this.#payloads = new Array<Uint8Array | null>(this.#capacity).fill(null);
    this.#dueTimes = new Float64Array(this.#capacity);
    this.#states = new Uint8Array(this.#capacity);
    for (let offset = 0; offset < this.#length; offset += 1) {
      const from = (this.#first + offset) & old.mask;
      const to = this.#slot(offset);
      this.#payloads[to] = old.payloads[from] ?? null;
      this.#dueTimes[to] = old.dueTimes[from] ?? 0;
      this.#states[to] = old.states[from] ?? MISSING;
    }
  }
}
