/** Joins PES packets from the packets of one PID, ISO/IEC 13818-1 §2.4.3.6. */
import { readTimestamp } from './timestamp.ts';

/** Bytes of start code, stream id and length. */
const PREFIX = 6;
/** Bytes of the prefix, two bytes of flags and the length of the header data. */
const FIXED = 9;
const HAS_PTS = 0x80;
const HAS_DTS = 0x40;
/** Stream ids whose packets have no header behind the length (table 2-21): maps, padding, ECM, EMM, directories. */
const BARE_IDS: ReadonlySet<number> = new Set([0xbc, 0xbe, 0xbf, 0xf0, 0xf1, 0xf2, 0xf8, 0xff]);
const FIRST_CAPACITY = 4096;
const NOTHING = new Uint8Array(0);

/** A PES packet without its header. */
export interface PesUnit {
  /** As written, 33 bits of 90 kHz; null if the packet has none. */
  readonly pts: number | null;
  readonly dts: number | null;
  /** Valid during the call only. */
  readonly data: Uint8Array;
}

/** Counters of dropped packets. */
export interface PesCounters {
  /** Packets without start code, or with a header beyond their end. */
  malformed: number;
  /** Packets of which a transport stream packet is missing. */
  damaged: number;
  /** Packets larger than allowed. */
  oversized: number;
}

/**
 * Holds one PES packet at a time, in a buffer that is reused. A packet without a length ends where the next one begins.
 */
export class PesReader {
  readonly #onUnit: (unit: PesUnit) => void;
  readonly #counters: PesCounters;
  readonly #maxBytes: number;
  /** The buffer grows to the largest packet so far. */
  #bytes: Uint8Array = NOTHING;
  #open = false;
  #length = 0;
  /** Bytes of the whole packet; 0 if it has no length. */
  #announced = 0;

  constructor(options: { onUnit: (unit: PesUnit) => void; counters: PesCounters; maxBytes: number }) {
    this.#onUnit = options.onUnit;
    this.#counters = options.counters;
    this.#maxBytes = options.maxBytes;
  }

  /** Takes the payload of a packet, `data` from `start` to `end`. */
  push(data: Uint8Array, start: number, end: number, unitStart: boolean): void {
    if (unitStart) {
      this.flush();
      if (!this.#begin(data, start, end)) return;
    }
    if (!this.#open) return;
    this.#append(data, start, end);
    if (this.#announced > 0 && this.#length >= this.#announced) this.flush();
  }

  /** Ends the current packet. An incomplete packet with a length is dropped. */
  flush(): void {
    if (!this.#open) return;
    this.#open = false;
    if (this.#length < this.#announced) this.#counters.damaged += 1;
    else this.#parse(this.#bytes.subarray(0, this.#length));
  }

  /** Drops the current packet, of which a part is missing. */
  lose(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#counters.damaged += 1;
  }

  #begin(data: Uint8Array, start: number, end: number): boolean {
    if (end - start < PREFIX || data[start] !== 0 || data[start + 1] !== 0 || data[start + 2] !== 1) {
      this.#counters.malformed += 1;
      return false;
    }
    const following = ((data[start + 4] ?? 0) << 8) | (data[start + 5] ?? 0);
    this.#announced = following === 0 ? 0 : PREFIX + following;
    this.#open = true;
    this.#length = 0;
    return true;
  }

  #append(data: Uint8Array, start: number, end: number): void {
    // Bytes behind the announced end are ignored.
    const last = this.#announced > 0 ? Math.min(end, start + this.#announced - this.#length) : end;
    const length = this.#length + last - start;
    if (length > this.#bytes.length && !this.#grow(length)) return;
    const bytes = this.#bytes;
    // Byte by byte is faster than a view and a copy for at most 184 bytes.
    for (let from = start, to = this.#length; from < last; from += 1, to += 1) bytes[to] = data[from] ?? 0;
    this.#length = length;
  }

  #grow(length: number): boolean {
    if (length > this.#maxBytes) {
      this.#open = false;
      this.#counters.oversized += 1;
      return false;
    }
    const larger = new Uint8Array(Math.min(this.#maxBytes, Math.max(length, this.#bytes.length * 2, FIRST_CAPACITY)));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
    return true;
  }

  #parse(bytes: Uint8Array): void {
    const streamId = bytes[3] ?? 0;
    if (BARE_IDS.has(streamId)) return;
    const from = FIXED + (bytes[8] ?? 0);
    const flags = bytes[7] ?? 0;
    const timestamps = (flags & HAS_PTS) === 0 ? 0 : (flags & HAS_DTS) === 0 ? 5 : 10;
    // Two bits `10` distinguish MPEG-2 headers from MPEG-1 headers.
    if (from > bytes.length || FIXED + timestamps > from || ((bytes[6] ?? 0) & 0xc0) !== 0x80) {
      this.#counters.malformed += 1;
      return;
    }
    const pts = timestamps === 0 ? null : readTimestamp(bytes, FIXED);
    const dts = timestamps === 10 ? readTimestamp(bytes, FIXED + 5) : pts;
    if (from < bytes.length) this.#onUnit({ pts, dts, data: bytes.subarray(from) });
  }
}
