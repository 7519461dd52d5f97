/** Reads bit fields, most significant bit first, from a range of a buffer. */
import { ProtocolError } from './protocol-error.ts';

/** ISO/IEC 14496-10 §9.1 allows 32 leading zeros; no syntax element we read is larger than 2^32 - 2. */
const MAX_EXP_GOLOMB_ZEROS = 31;

/**
 * A cursor over bits. Never reads outside its range: it throws `ProtocolError` with `BITSTREAM_TRUNCATED`
 * and the byte offset inside `data` instead.
 */
export class BitReader {
  readonly #data: Uint8Array;
  readonly #endBit: number;
  #bit: number;

  /** Reads `data` from byte `start` up to, not including, byte `end`. */
  constructor(data: Uint8Array, start = 0, end = data.length) {
    this.#data = data;
    this.#bit = start * 8;
    this.#endBit = Math.min(end, data.length) * 8;
  }

  /** Bits not read yet. */
  get bitsLeft(): number {
    return this.#endBit - this.#bit;
  }

  /** Offset of the byte that holds the next bit. */
  get byteOffset(): number {
    return this.#bit >>> 3;
  }

  /** True when the next bit is the first of a byte. */
  get aligned(): boolean {
    return (this.#bit & 7) === 0;
  }

  /** A second cursor at the present position, with the same end. */
  mark(): BitReader {
    const copy = new BitReader(this.#data, 0, this.#endBit / 8);
    copy.#bit = this.#bit;
    return copy;
  }

  /** An unsigned number of 0 to 32 bits. */
  bits(count: number): number {
    this.#need(count);
    let value = 0;
    let left = count;
    while (left > 0) {
      const inByte = 8 - (this.#bit & 7);
      const take = Math.min(inByte, left);
      const byte = this.#data[this.#bit >>> 3] ?? 0;
      const field = (byte >>> (inByte - take)) & ((1 << take) - 1);
      value = value * 2 ** take + field;
      this.#bit += take;
      left -= take;
    }
    return value;
  }

  flag(): boolean {
    return this.bits(1) === 1;
  }

  skip(count: number): void {
    this.#need(count);
    this.#bit += count;
  }

  /** Moves to the next byte boundary. */
  align(): void {
    this.#bit = (this.#bit + 7) & ~7;
  }

  /** A view of the next `count` bytes; the cursor must be aligned. */
  bytes(count: number): Uint8Array {
    if (!this.aligned) throw new TypeError('BitReader.bytes needs an aligned cursor');
    this.#need(count * 8);
    const start = this.byteOffset;
    this.#bit += count * 8;
    return this.#data.subarray(start, start + count);
  }

  /** Unsigned Exp-Golomb code, ISO/IEC 14496-10 §9.1. */
  ue(): number {
    let zeros = 0;
    while (!this.flag()) {
      zeros += 1;
      if (zeros > MAX_EXP_GOLOMB_ZEROS) {
        throw new ProtocolError(
          'EXP_GOLOMB_RANGE',
          `Exp-Golomb code with more than ${MAX_EXP_GOLOMB_ZEROS} leading zeros`,
          this.byteOffset,
        );
      }
    }
    return 2 ** zeros - 1 + this.bits(zeros);
  }

  /** Unsigned Exp-Golomb code that must not exceed `max`; `name` is the syntax element for the error text. */
  ueUpTo(max: number, name: string): number {
    const offset = this.byteOffset;
    const value = this.ue();
    if (value > max) throw new ProtocolError('EXP_GOLOMB_RANGE', `${name} is ${value}, at most ${max} is allowed`, offset);
    return value;
  }

  /** Signed Exp-Golomb code, ISO/IEC 14496-10 §9.1.1. */
  se(): number {
    const code = this.ue();
    return code % 2 === 1 ? (code + 1) / 2 : 0 - code / 2;
  }

  #need(count: number): void {
    if (count > this.bitsLeft) {
      throw new ProtocolError('BITSTREAM_TRUNCATED', `${count} bits needed, ${this.bitsLeft} left`, this.byteOffset);
    }
  }
}
