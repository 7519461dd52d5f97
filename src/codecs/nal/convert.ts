/** Changes how the NAL units of an access unit are delimited. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { AnnexbCursor, LengthPrefixedCursor, type NalCursor, type NalLengthSize } from './nal-cursor.ts';

const LENGTH_SIZE = 4;

/** Decides by its first byte whether a NAL unit stays. */
export type NalFilter = (firstByte: number) => boolean;

const keepAll: NalFilter = () => true;

/** Annex-B → 4-byte lengths. Units that `keep` refuses (delimiters, fillers …) are left out. */
export function annexbToLengthPrefixed(data: Uint8Array, keep: NalFilter = keepAll): Uint8Array {
  return relength(new AnnexbCursor(data), new AnnexbCursor(data), keep);
}

/** Lengths of `lengthSize` bytes → 4-byte lengths. Returns `data` itself if it has them already. Throws `NAL_LENGTH`. */
export function toFourByteLengths(data: Uint8Array, lengthSize: NalLengthSize): Uint8Array {
  if (lengthSize === LENGTH_SIZE) return data;
  return relength(new LengthPrefixedCursor(data, lengthSize), new LengthPrefixedCursor(data, lengthSize), keepAll);
}

/** Returns `data` if its 4-byte lengths lead exactly to its end; checks nothing else. Throws `NAL_LENGTH`. */
export function withValidLengths(data: Uint8Array): Uint8Array {
  let at = 0;
  while (at + LENGTH_SIZE <= data.length) {
    const length = (data[at] ?? 0) * 2 ** 24 + (((data[at + 1] ?? 0) << 16) | ((data[at + 2] ?? 0) << 8) | (data[at + 3] ?? 0));
    if (length > data.length - at - LENGTH_SIZE) {
      throw new ProtocolError('NAL_LENGTH', `NAL unit of ${length} bytes, ${data.length - at - LENGTH_SIZE} left`, at);
    }
    at += LENGTH_SIZE + length;
  }
  if (at !== data.length) throw new ProtocolError('NAL_LENGTH', `${LENGTH_SIZE} bytes of NAL unit length expected`, at);
  return data;
}

/** Joins whole NAL units to one access unit with 4-byte lengths. */
export function joinNalUnits(units: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(units.reduce((sum, unit) => sum + LENGTH_SIZE + unit.length, 0));
  let at = 0;
  for (const unit of units) at = putUnit(out, at, unit, 0, unit.length);
  return out;
}

/** Two cursors over the same units: one measures, one copies. */
function relength(measure: NalCursor, copy: NalCursor, keep: NalFilter): Uint8Array {
  let length = 0;
  while (measure.next()) {
    if (keep(measure.data[measure.start] ?? 0)) length += LENGTH_SIZE + measure.end - measure.start;
  }
  const out = new Uint8Array(length);
  let at = 0;
  while (copy.next()) {
    if (keep(copy.data[copy.start] ?? 0)) at = putUnit(out, at, copy.data, copy.start, copy.end);
  }
  return out;
}

function putUnit(out: Uint8Array, at: number, data: Uint8Array, start: number, end: number): number {
  const length = end - start;
  out[at] = length >>> 24;
  out[at + 1] = length >>> 16;
  out[at + 2] = length >>> 8;
  out[at + 3] = length;
  out.set(data.subarray(start, end), at + LENGTH_SIZE);
  return at + LENGTH_SIZE + length;
}
