/** Finds the beginnings of frames among NAL units with 4-byte lengths: ISO/IEC 14496-10 §7.4.1.2.3, 23008-2 §7.4.2.4.4. */
import { H264NalType, h264NalType } from '../../codecs/h264/nal-type.ts';
import { H265NalType, h265NalType } from '../../codecs/h265/nal-type.ts';
import { LengthPrefixedCursor } from '../../codecs/nal/nal-cursor.ts';
import { VideoCodec } from '../../media/codec.ts';

const LENGTH_SIZE = 4;
/** `first_mb_in_slice` 0, or `first_slice_segment_in_pic_flag`: the first bit behind the header of the unit. */
const FIRST_SLICE = 0x80;

/** Types of slice prefixes, subset parameter sets and the reserved types next to them. */
const H264_RESERVED_FIRST = 14;
const H264_RESERVED_LAST = 18;

/** Beginnings of frames in one PES packet, as byte offsets. */
export interface FrameBounds {
  /** The first slice continues an earlier frame. */
  readonly isTail: boolean;
  /** The packet has slices. */
  readonly hasSlices: boolean;
  /** Beginnings of the second and further frames, including the parameter sets and messages before their slices. */
  readonly further: readonly number[];
}

/** Reads only the first bytes of units. Two fields count as two frames here. */
export function frameBounds(codec: VideoCodec, data: Uint8Array): FrameBounds {
  const h264 = codec === VideoCodec.H264;
  const nals = new LengthPrefixedCursor(data);
  const further: number[] = [];
  let hasSlices = false;
  let isTail = false;
  /** The first unit that is no slice after the last slice. */
  let between = -1;
  while (nals.next()) {
    const firstByte = data[nals.start] ?? 0;
    const at = nals.start - LENGTH_SIZE;
    if (!(h264 ? isH264Slice(firstByte) : isH265Slice(firstByte))) {
      if (hasSlices && between < 0 && (h264 ? opensH264(firstByte) : opensH265(firstByte))) between = at;
      continue;
    }
    const first = ((data[nals.start + (h264 ? 1 : 2)] ?? 0) & FIRST_SLICE) !== 0;
    if (!hasSlices) isTail = !first;
    else if (first) further.push(between < 0 ? at : between);
    hasSlices = true;
    between = -1;
  }
  return { isTail, hasSlices, further };
}

/** True for units that, after a slice, begin the next frame. */
function opensH264(firstByte: number): boolean {
  const type = h264NalType(firstByte);
  return (type >= H264NalType.SEI && type <= H264NalType.AUD) || (type >= H264_RESERVED_FIRST && type <= H264_RESERVED_LAST);
}

function opensH265(firstByte: number): boolean {
  const type = h265NalType(firstByte);
  return (type >= H265NalType.VPS && type <= H265NalType.AUD) || type === H265NalType.SEI_PREFIX;
}

function isH264Slice(firstByte: number): boolean {
  const type = h264NalType(firstByte);
  return type === H264NalType.SLICE || type === H264NalType.SLICE_PARTITION_A || type === H264NalType.IDR;
}

function isH265Slice(firstByte: number): boolean {
  return h265NalType(firstByte) <= H265NalType.SLICE_LAST;
}
