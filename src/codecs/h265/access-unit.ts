/** What the NAL units of an H.265 access unit tell: random access, slice types. */
import { BitReader } from '../../util/bit-reader.ts';
import type { NalCursor } from '../nal/nal-cursor.ts';
import { unescapeRbsp } from '../nal/rbsp.ts';
import { H265NalType, h265NalType } from './nal-type.ts';

const NAL_HEADER_LENGTH = 2;
const SLICE_TYPE_B = 0;
/** Two flags and two Exp-Golomb codes: with emulation prevention never longer. */
const SLICE_HEADER_PROBE = 24;
const MAX_PPS_ID = 63;

/** True when the first slice belongs to an intra random access picture (IDR, BLA or CRA). */
export function isH265Keyframe(nals: NalCursor): boolean {
  while (nals.next()) {
    const type = h265NalType(nals.data[nals.start] ?? 0);
    if (type <= H265NalType.SLICE_LAST) return isIrap(type);
  }
  return false;
}

/**
 * True when the first slice is a B slice. Low-delay encoders use B slices that only look back, so it is no proof of
 * reordering. Extra slice header bits (`num_extra_slice_header_bits`, multi-layer streams only) are taken to be absent.
 */
export function hasH265BSlices(nals: NalCursor): boolean {
  while (nals.next()) {
    const type = h265NalType(nals.data[nals.start] ?? 0);
    if (type > H265NalType.SLICE_LAST) continue;
    const end = Math.min(nals.end, nals.start + SLICE_HEADER_PROBE);
    const reader = new BitReader(unescapeRbsp(nals.data.subarray(nals.start, end), NAL_HEADER_LENGTH));
    const first = reader.flag();
    if (!first) continue; // later segments have fields that depend on the parameter sets
    if (isIrap(type)) reader.skip(1); // no_output_of_prior_pics_flag
    reader.ueUpTo(MAX_PPS_ID, 'slice_pic_parameter_set_id');
    return reader.ueUpTo(2, 'slice_type') === SLICE_TYPE_B;
  }
  return false;
}

function isIrap(type: number): boolean {
  return type >= H265NalType.IRAP_FIRST && type <= H265NalType.IRAP_LAST;
}
