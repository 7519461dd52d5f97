/** Packets not sent yet, or sent and not acknowledged: a ring by sequence number. */
import { HEADER_LENGTH } from './header.ts';
import { addSequence, sequenceOffset } from './sequence.ts';

const INITIAL_CAPACITY = 256;

/** The buffer grows up to its limit. Payloads are kept by reference; headers are written into one buffer. */
export class SendBuffer {
  readonly #limit: number;
  #capacity: number;
  #payloads: (Uint8Array | null)[];
  #headers: Uint8Array;
  /** Time at which the application handed the packet over, µs. */
  #origins: Float64Array;
  /** Time at which the packet was last sent, µs. */
  #sentAt: Float64Array;
  /** 0 not sent, 1 sent once, 2 sent again. */
  #sendings: Uint8Array;
  /** 1: the peer reported it missing. */
  #lost: Uint8Array;
  #first: number;
  #length = 0;
  #unsent: number;
  #lostCount = 0;
  /** No packet before this one is lost. */
  #lostFrom: number;

  /** `limit`: maximum of packets, a power of two. */
  constructor(firstSequence: number, limit: number) {
    this.#limit = limit;
    this.#capacity = Math.min(INITIAL_CAPACITY, limit);
    this.#payloads = new Array<Uint8Array | null>(this.#capacity).fill(null);
    this.#headers = new Uint8Array(this.#capacity * HEADER_LENGTH);
    this.#origins = new Float64Array(this.#capacity);
    this.#sentAt = new Float64Array(this.#capacity);
    this.#sendings = new Uint8Array(this.#capacity);
    this.#lost = new Uint8Array(this.#capacity);
    this.#first = firstSequence;
    this.#unsent = firstSequence;
    this.#lostFrom = firstSequence;
  }

  /** Sequence number of the oldest packet, or of the next one when empty. */
  get first(): number {
    return this.#first;
  }

  /** Sequence number of the next packet to be added. */
  get end(): number {
    return addSequence(this.#first, this.#length);
  }

  /** Sequence number of the first packet that was never sent; `end` if there is none. */
  get unsent(): number {
    return this.#unsent;
  }

  get length(): number {
    return this.#length;
  }

  get full(): boolean {
    return this.#length === this.#limit;
  }

  /** Packets sent and not acknowledged. */
  get inFlight(): number {
    return sequenceOffset(this.#first, this.#unsent);
  }

  get lostCount(): number {
    return this.#lostCount;
  }

  /** Time at which the oldest packet was handed over, µs; only while there is one. */
  get firstOrigin(): number {
    return this.origin(this.#first);
  }

  /** Time at which the packet was handed over, µs. */
  origin(sequence: number): number {
    return this.#origins[this.#slot(sequence)] ?? 0;
  }

  /** Time at which the oldest packet was last sent, µs; only while a packet is in flight. */
  get firstSentAt(): number {
    return this.#sentAt[this.#slot(this.#first)] ?? 0;
  }

  /** Adds a packet, which must fit, and returns the offset of its 16 bytes in `headers`. */
  add(payload: Uint8Array, now: number): number {
    if (this.#length === this.#capacity) this.#grow();
    const slot = this.#slot(this.end);
    this.#payloads[slot] = payload;
    this.#origins[slot] = now;
    this.#sendings[slot] = 0;
    this.#lost[slot] = 0;
    this.#length += 1;
    return slot * HEADER_LENGTH;
  }

  /** The buffer of all headers; `add` may replace it. */
  get headers(): Uint8Array {
    return this.#headers;
  }

  headerOffset(sequence: number): number {
    return this.#slot(sequence) * HEADER_LENGTH;
  }

  payload(sequence: number): Uint8Array {
    const payload = this.#payloads[this.#slot(sequence)];
    if (payload === null || payload === undefined) throw new RangeError(`packet ${sequence} is not in the buffer`);
    return payload;
  }

  /** How often the packet was sent: 0, 1, or 2 for more. */
  sendings(sequence: number): number {
    return this.#sendings[this.#slot(sequence)] ?? 0;
  }

  sentAt(sequence: number): number {
    return this.#sentAt[this.#slot(sequence)] ?? 0;
  }

  /** Marks the packet as sent at `now`. */
  markSent(sequence: number, now: number): void {
    const slot = this.#slot(sequence);
    this.#sentAt[slot] = now;
    this.#sendings[slot] = Math.min(2, (this.#sendings[slot] ?? 0) + 1);
    if (sequence === this.#unsent) this.#unsent = addSequence(sequence, 1);
    if (this.#lost[slot] === 1) {
      this.#lost[slot] = 0;
      this.#lostCount -= 1;
    }
  }

  /** Marks a packet as missing at the peer; it must be in flight. */
  markLost(sequence: number): void {
    const slot = this.#slot(sequence);
    if (this.#lost[slot] === 1) return;
    this.#lost[slot] = 1;
    this.#lostCount += 1;
    if (sequenceOffset(this.#lostFrom, sequence) < 0) this.#lostFrom = sequence;
  }

  /** The oldest lost packet; -1 if there is none. */
  firstLost(): number {
    if (this.#lostCount === 0) {
      this.#lostFrom = this.#unsent;
      return -1;
    }
    if (sequenceOffset(this.#first, this.#lostFrom) < 0) this.#lostFrom = this.#first;
    while (this.#lost[this.#slot(this.#lostFrom)] !== 1) this.#lostFrom = addSequence(this.#lostFrom, 1);
    return this.#lostFrom;
  }

  /** Forgets all packets before `sequence`, which lies between `first` and `end`. */
  release(sequence: number): void {
    const count = sequenceOffset(this.#first, sequence);
    for (let index = 0; index < count; index += 1) {
      const slot = this.#slot(addSequence(this.#first, index));
      this.#payloads[slot] = null;
      if (this.#lost[slot] === 1) {
        this.#lost[slot] = 0;
        this.#lostCount -= 1;
      }
    }
    this.#first = sequence;
    this.#length -= count;
    if (sequenceOffset(this.#unsent, sequence) > 0) this.#unsent = sequence;
  }

  #slot(sequence: number): number {
    return sequence & (this.#capacity - 1);
  }

  #grow(): void {
    const old = { mask: this.#capacity - 1, payloads: this.#payloads, headers: this.#headers, origins: this.#origins };
    const { sentAt, sendings, lost } = { sentAt: this.#sentAt, sendings: this.#sendings, lost: this.#lost };
    const capacity = this.#capacity * 2;
    this.#capacity = capacity;
    this.#payloads = new Array<Uint8Array | null>(capacity).fill(null);
    this.#headers = new Uint8Array(capacity * HEADER_LENGTH);
    this.#origins = new Float64Array(capacity);
    this.#sentAt = new Float64Array(capacity);
    this.#sendings = new Uint8Array(capacity);
    this.#lost = new Uint8Array(capacity);
    for (let index = 0; index < this.#length; index += 1) {
      const sequence = addSequence(this.#first, index);
      const from = sequence & old.mask;
      const to = this.#slot(sequence);
      this.#payloads[to] = old.payloads[from] ?? null;
      this.#headers.set(old.headers.subarray(from * HEADER_LENGTH, (from + 1) * HEADER_LENGTH), to * HEADER_LENGTH);
      this.#origins[to] = old.origins[from] ?? 0;
      this.#sentAt[to] = sentAt[from] ?? 0;
      this.#sendings[to] = sendings[from] ?? 0;
      this.#lost[to] = lost[from] ?? 0;
    }
  }
}
