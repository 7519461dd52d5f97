/**
 * Which packets came when, for a sender that estimates its bandwidth (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
 *
 *  V P FMT=15 | PT=205 | length | SSRC of sender | SSRC of media | base sequence 16 | count 16 | reference time 24 | number 8 |
 *  chunks 16 … | deltas 8 or 16 … | padding
 */
import { ByteWriter } from '../../util/byte-writer.ts';
import { sequenceDistance } from './rtp-packet.ts';

const HEAD = 0x8f;
const TRANSPORT_FEEDBACK = 205;
const REFERENCE_MS = 64;
/** Deltas count quarters of a millisecond. */
const TICKS_PER_MS = 4;
const TICKS_PER_REFERENCE = REFERENCE_MS * TICKS_PER_MS;
/** Limit of sequence numbers in one packet: it stays below usual packet sizes even if all deltas are large. */
const MAX_STATUSES = 400;
/** Arrivals kept for the next feedback; the oldest are forgotten first. */
const MAX_ARRIVALS = 1000;
/** A step of more than this is a new beginning of the sender. */
const MAX_STEP = 5000;
const VECTOR_SYMBOLS = 7;
const MAX_RUN = 0x1f_ff;

const Status = { MISSING: 0, SMALL: 1, LARGE: 2 } as const;

/** One for each publisher; the owner calls `take` whenever feedback is due. Waiting arrivals are bounded. */
export class TransportFeedback {
  /** Ticks of arrival by sequence number without wraps. */
  #arrivals = new Map<number, number>();
  #highest = -1;
  /** First number of the next feedback; -1 before the first. */
  #base = -1;
  #number = 0;

  /** Arrivals not reported yet. */
  get pending(): number {
    return this.#arrivals.size;
  }

  /** `sequence`: 16 bits of the extension. `at`: ms. */
  arrived(sequence: number, at: number): void {
    const ahead = this.#highest < 0 ? 0 : sequenceDistance(this.#highest & 0xff_ff, sequence);
    if (this.#highest < 0 || Math.abs(ahead) > MAX_STEP) {
      this.#arrivals.clear();
      // Leaves room for packets that were overtaken by the first.
      this.#highest = sequence + 0x1_00_00;
      this.#base = this.#highest;
    }
    const index = this.#highest + (Math.abs(ahead) > MAX_STEP ? 0 : ahead);
    this.#highest = Math.max(this.#highest, index);
    this.#arrivals.set(index, Math.round(at * TICKS_PER_MS));
    if (this.#arrivals.size > MAX_ARRIVALS) {
      const [oldest = 0] = this.#arrivals.keys();
      this.#arrivals.delete(oldest);
    }
  }

  /** The pending reports, as packets ready to be sent; none if nothing arrived. */
  take(ownSsrc: number, mediaSsrc: number): Uint8Array[] {
    const packets: Uint8Array[] = [];
    const indices = [...this.#arrivals.keys()].sort((a, b) => a - b);
    for (let from = 0; from < indices.length; ) {
      const first = indices[from] ?? 0;
      // Packets expected between the last feedback and the first arrival are reported as missing.
      const base = first > this.#base && first - this.#base < MAX_STATUSES / 2 ? this.#base : first;
      const count = this.#fitting(indices, from, base);
      packets.push(this.#build(ownSsrc, mediaSsrc, base, indices.slice(from, from + count)));
      from += count;
      this.#base = Math.max(this.#base, (indices[from - 1] ?? 0) + 1);
    }
    this.#arrivals = new Map();
    return packets;
  }

  /** The number of arrivals that fit into one packet: their numbers are close together and the deltas fit into 16 bits. */
  #fitting(indices: readonly number[], from: number, base: number): number {
    let count = 1;
    let ticks = this.#arrivals.get(indices[from] ?? 0) ?? 0;
    for (let n = from + 1; n < indices.length; n += 1, count += 1) {
      const index = indices[n] ?? 0;
      const next = this.#arrivals.get(index) ?? 0;
      if (index - base >= MAX_STATUSES || Math.abs(next - ticks) > 0x7f_ff) break;
      ticks = next;
    }
    return count;
  }

  #build(ownSsrc: number, mediaSsrc: number, base: number, indices: readonly number[]): Uint8Array {
    const firstTicks = this.#arrivals.get(indices[0] ?? 0) ?? 0;
    const reference = Math.floor(firstTicks / TICKS_PER_REFERENCE);
    const count = (indices.at(-1) ?? base) - base + 1;
    const symbols = new Uint8Array(count);
    const deltas = new ByteWriter(64);
    let ticks = reference * TICKS_PER_REFERENCE;
    for (const index of indices) {
      const at = this.#arrivals.get(index) ?? 0;
      const delta = at - ticks;
      ticks = at;
      const isSmall = delta >= 0 && delta <= 0xff;
      symbols[index - base] = isSmall ? Status.SMALL : Status.LARGE;
      if (isSmall) deltas.u8(delta);
      else deltas.u16(delta & 0xff_ff);
    }
    const body = new ByteWriter(128);
    body
      .u32(ownSsrc)
      .u32(mediaSsrc)
      .u16(base & 0xff_ff)
      .u16(count);
    body.u24(reference & 0xff_ff_ff).u8(this.#number);
    writeChunks(symbols, body);
    body.bytes(deltas.finish());
    body.zeros((4 - (body.length % 4)) % 4);
    this.#number = (this.#number + 1) & 0xff;
    const writer = new ByteWriter(body.length + 4);
    return writer
      .u8(HEAD)
      .u8(TRANSPORT_FEEDBACK)
      .u16(body.length / 4)
      .bytes(body.finish())
      .finish();
  }
}

/** Runs of equal symbols as one chunk each, everything else seven at a time. */
function writeChunks(symbols: Uint8Array, writer: ByteWriter): void {
  for (let at = 0; at < symbols.length; ) {
    const symbol = symbols[at] ?? 0;
    let run = 1;
    while (at + run < symbols.length && symbols[at + run] === symbol && run < MAX_RUN) run += 1;
    if (run >= VECTOR_SYMBOLS || at + run === symbols.length) {
      writer.u16((symbol << 13) | run);
      at += run;
      continue;
    }
    let chunk = 0xc0_00;
    for (let n = 0; n < VECTOR_SYMBOLS; n += 1) chunk |= (symbols[at + n] ?? 0) << (2 * (VECTOR_SYMBOLS - 1 - n));
    writer.u16(chunk);
    at += VECTOR_SYMBOLS;
  }
}
