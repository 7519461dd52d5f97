/** Facts from the NAL units of an H.264 access unit: keyframe, slice types, recovery point. */
import { BitReader } from '../../util/bit-reader.ts';
import type { NalCursor } from '../nal/nal-cursor.ts';
import { unescapeRbsp } from '../nal/rbsp.ts';
import { findSei } from '../nal/sei.ts';
import { H264NalType, h264NalType } from './nal-type.ts';

const SEI_RECOVERY_POINT = 6;
const SLICE_TYPE_I = 2;
const SLICE_TYPE_SI = 4;
/** Bytes that hold a slice header up to `slice_type`: two Exp-Golomb codes, with emulation prevention. */
const SLICE_HEADER_PROBE = 16;

/**
 * True if a decoder can start here: the unit has an IDR picture, or it is an intra picture whose recovery point promises correct frames
 * from here on (open GOP, usual in broadcasting).
 */
export function isH264Keyframe(nals: NalCursor): boolean {
  let recovers = false;
  while (nals.next()) {
    const type = h264NalType(nals.data[nals.start] ?? 0);
    if (type === H264NalType.IDR) return true;
    if (type === H264NalType.SEI) recovers ||= recoveryFrameCount(nals) === 0;
    if (type === H264NalType.SLICE) return recovers && isIntra(sliceType(nals));
  }
  return false;
}

/**
 * Number of frames until frames are correct if decoding starts here (`recovery_frame_cnt`, ISO/IEC 14496-10 §D.2.8), or null without a
 * recovery point. Streams with periodic intra refresh have one per refresh cycle and no IDR pictures.
 */
export function h264RecoveryPoint(nals: NalCursor): number | null {
  while (nals.next()) {
    const type = h264NalType(nals.data[nals.start] ?? 0);
    if (type === H264NalType.IDR || type === H264NalType.SLICE) return null;
    const count = type === H264NalType.SEI ? recoveryFrameCount(nals) : null;
    if (count !== null) return count;
  }
  return null;
}

function isIntra(type: number): boolean {
  return type === SLICE_TYPE_I || type === SLICE_TYPE_SI;
}

/** `slice_type` modulo 5 (§7.4.3): values 5 to 9 promise that all slices have the same type. */
function sliceType(nals: NalCursor): number {
  const end = Math.min(nals.end, nals.start + SLICE_HEADER_PROBE);
  const reader = new BitReader(unescapeRbsp(nals.data.subarray(nals.start, end), 1));
  reader.ue(); // first_mb_in_slice
  return reader.ueUpTo(9, 'slice_type') % 5;
}

function recoveryFrameCount(nals: NalCursor): number | null {
  const payload = findSei(unescapeRbsp(nals.unit(), 1), SEI_RECOVERY_POINT);
  return payload === null ? null : new BitReader(payload).ue();
}
