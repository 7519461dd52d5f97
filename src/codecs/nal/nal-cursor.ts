/** Walks over the NAL units of an access unit without allocating per unit. */
import { ProtocolError } from '../../util/protocol-error.ts';

/** Bytes of the length before a NAL unit (`lengthSizeMinusOne` + 1). */
export type NalLengthSize = 1 | 2 | 4;

/** A cursor: `next()` moves to the next unit, `start` and `end` delimit it inside `data`. */
export interface NalCursor {
  readonly data: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** False after the last unit. Empty units are skipped. */
  next(): boolean;
  /** A view of the current unit, its header included. */
  unit(): Uint8Array;
}

/**
 * NAL units behind start codes, ISO/IEC 14496-10 Annex B and 23008-2 Annex B. Bytes before the first start code
 * are ignored, trailing zero bytes do not belong to a unit.
 */
export class AnnexbCursor implements NalCursor {
  readonly data: Uint8Array;
  #start = 0;
  #end = 0;
  /** Start of the next unit, behind its start code; -1 if there is none. */
  #following: number;

  constructor(data: Uint8Array) {
    this.data = data;
    this.#following = afterStartCode(data, 0);
  }

  get start(): number {
    return this.#start;
  }

  get end(): number {
    return this.#end;
  }

  next(): boolean {
    while (this.#following >= 0) {
      this.#start = this.#following;
      this.#following = afterStartCode(this.data, this.#start);
      let end = this.#following < 0 ? this.data.length : this.#following - 3;
      while (end > this.#start && this.data[end - 1] === 0) end -= 1;
      this.#end = end;
      if (end > this.#start) return true;
    }
    return false;
  }

  unit(): Uint8Array {
    return this.data.subarray(this.#start, this.#end);
  }
}

/** NAL units behind their lengths, ISO/IEC 14496-15 §5.3.4.2. Throws `NAL_LENGTH` for a length beyond the data. */
export class LengthPrefixedCursor implements NalCursor {
  readonly data: Uint8Array;
  readonly #lengthSize: NalLengthSize;
  #start = 0;
  #end = 0;

  constructor(data: Uint8Array, lengthSize: NalLengthSize = 4) {
    this.data = data;
    this.#lengthSize = lengthSize;
  }

  get start(): number {
    return this.#start;
  }

  get end(): number {
    return this.#end;
  }

  next(): boolean {
    const data = this.data;
    let at = this.#end;
    while (at < data.length) {
      const start = at + this.#lengthSize;
      if (start > data.length) throw new ProtocolError('NAL_LENGTH', `${this.#lengthSize} bytes of NAL unit length expected`, at);
      let length = 0;
      for (let i = at; i < start; i++) length = length * 256 + (data[i] ?? 0);
      if (length > data.length - start) {
        throw new ProtocolError('NAL_LENGTH', `NAL unit of ${length} bytes, ${data.length - start} left`, at);
      }
      at = start + length;
      if (length > 0) {
        this.#start = start;
        this.#end = at;
        return true;
      }
    }
    this.#end = data.length;
    return false;
  }

  unit(): Uint8Array {
    return this.data.subarray(this.#start, this.#end);
  }
}

/** Offset behind the first `00 00 01` at or after `from`, or -1. */
function afterStartCode(data: Uint8Array, from: number): number {
  let at = from + 2;
  while (at < data.length) {
    const byte = data[at] ?? 0;
    if (byte > 1) at += 3;
    else if (byte === 0) at += 1;
    else if (data[at - 1] === 0 && data[at - 2] === 0) return at + 1;
    else at += 3;
  }
  return -1;
}
