/** The list of lost packets in a NAK: single numbers, and ranges whose first number has its top bit set (Appendix A). */
import { ProtocolError } from '../../util/protocol-error.ts';
import { SEQUENCE_MASK, sequenceOffset } from './sequence.ts';
import { readU32, writeU32 } from './words.ts';

/** Lost packets from `first` to `last`, both included. */
export interface LossRange {
  readonly first: number;
  readonly last: number;
}

const RANGE_BIT = 0x80_00_00_00;
const WORD = 4;

/** Writes as many ranges as `maxBytes` can hold; the rest waits for the next NAK. */
export function serializeLossList(ranges: readonly LossRange[], maxBytes: number): Uint8Array {
  const list = new Uint8Array(Math.min(maxBytes, ranges.length * 2 * WORD));
  let at = 0;
  for (const { first, last } of ranges) {
    const isRange = first !== last;
    if (at + (isRange ? 2 : 1) * WORD > list.length) break;
    writeU32(list, at, isRange ? first | RANGE_BIT : first);
    at += WORD;
    if (!isRange) continue;
    writeU32(list, at, last);
    at += WORD;
  }
  return list.subarray(0, at);
}

/** Throws `ProtocolError` for a range without end, or with its end before its beginning. */
export function parseLossList(data: Uint8Array, start: number): LossRange[] {
  const ranges: LossRange[] = [];
  for (let at = start; at + WORD <= data.length; ) {
    const word = readU32(data, at);
    const first = word & SEQUENCE_MASK;
    if ((word & RANGE_BIT) === 0) {
      ranges.push({ first, last: first });
      at += WORD;
      continue;
    }
    if (at + 2 * WORD > data.length) throw new ProtocolError('SRT_NAK', 'loss range without an end', at);
    const last = readU32(data, at + WORD) & SEQUENCE_MASK;
    if (sequenceOffset(first, last) < 0) throw new ProtocolError('SRT_NAK', `loss range ends (${last}) before it begins (${first})`, at);
    ranges.push({ first, last });
    at += 2 * WORD;
  }
  if (ranges.length === 0) throw new ProtocolError('SRT_NAK', 'NAK without a lost packet', start);
  return ranges;
}
