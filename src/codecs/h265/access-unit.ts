/** Facts from the NAL units of an H.265 access unit: random access. */
import type { NalCursor } from '../nal/nal-cursor.ts';
import { H265NalType, h265NalType } from './nal-type.ts';

/** True when the first slice belongs to an intra random access picture (IDR, BLA or CRA). */
export function isH265Keyframe(nals: NalCursor): boolean {
  while (nals.next()) {
    const type = h265NalType(nals.data[nals.start] ?? 0);
    if (type <= H265NalType.SLICE_LAST) return isIrap(type);
  }
  return false;
}

function isIrap(type: number): boolean {
  return type >= H265NalType.IRAP_FIRST && type <= H265NalType.IRAP_LAST;
}
