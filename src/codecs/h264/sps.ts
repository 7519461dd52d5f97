/** Sequence and picture parameter sets of H.264, ISO/IEC 14496-10 §7.3.2.1, §7.3.2.2, Annex E. */
import { BitReader } from '../../util/bit-reader.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { type AspectRatio, readVuiHead, SQUARE } from '../aspect-ratio.ts';
import { unescapeRbsp } from '../nal/rbsp.ts';
import { H264NalType, h264NalType } from './nal-type.ts';

/** Fields of a sequence parameter set. */
export interface H264Sps {
  readonly id: number;
  readonly profileIdc: number;
  /** The byte of constraint_set flags. */
  readonly constraints: number;
  readonly levelIdc: number;
  /** 0 monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4. */
  readonly chromaFormatIdc: number;
  readonly bitDepthLuma: number;
  readonly bitDepthChroma: number;
  readonly picOrderCntType: number;
  /** False if frames may be coded as fields. */
  readonly frameMbsOnly: boolean;
  /** Pixels, after cropping. */
  readonly width: number;
  readonly height: number;
  readonly sampleAspectRatio: AspectRatio;
  /** Frames per second by the VUI timing; 0 if unknown. */
  readonly framerate: number;
  /** `max_num_reorder_frames`; null if the stream does not say. */
  readonly maxReorderFrames: number | null;
  /** False if the stream promises that output order is decoding order. */
  readonly hasReordering: boolean;
}

interface Vui {
  readonly sampleAspectRatio: AspectRatio;
  readonly framerate: number;
  readonly maxReorderFrames: number | null;
}

const NO_VUI: Vui = { sampleAspectRatio: SQUARE, framerate: 0, maxReorderFrames: null };

const BASELINE_PROFILE = 66;
/** Profiles with chroma format, bit depths and scaling matrices in the SPS (§7.3.2.1.1). */
const HIGH_PROFILES: ReadonlySet<number> = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);
/** High 10 Intra and its relatives: with constraint_set3 nothing is reordered (§E.2.1). */
const INTRA_CAPABLE_PROFILES: ReadonlySet<number> = new Set([44, 86, 100, 110, 122, 244]);
const CONSTRAINT_SET3 = 0x10;
const EXTENDED_PROFILE_MAX_REF = 255;
const MAX_DIMENSION = 32_768;
const MAX_SPS_ID = 31;
const MAX_PPS_ID = 255;

/** True for profiles whose SPS and avcC carry chroma format and bit depths. */
export function isH264HighProfile(profileIdc: number): boolean {
  return HIGH_PROFILES.has(profileIdc);
}

/** Parses a whole SPS NAL unit (header included). */
export function parseH264Sps(unit: Uint8Array): H264Sps {
  if (unit.length < 4 || h264NalType(unit[0] ?? 0) !== H264NalType.SPS)
    throw new ProtocolError('H264_SPS', 'not a sequence parameter set', 0);
  const reader = new BitReader(unescapeRbsp(unit, 1));
  const profileIdc = reader.bits(8);
  const constraints = reader.bits(8);
  const levelIdc = reader.bits(8);
  const id = reader.ueUpTo(MAX_SPS_ID, 'seq_parameter_set_id');
  const format = isH264HighProfile(profileIdc)
    ? readChromaFormat(reader)
    : { chromaFormatIdc: 1, separatePlanes: false, luma: 8, chroma: 8 };
  reader.ueUpTo(12, 'log2_max_frame_num_minus4');
  const picOrderCntType = skipPicOrderCount(reader);
  reader.ueUpTo(EXTENDED_PROFILE_MAX_REF, 'max_num_ref_frames');
  reader.skip(1); // gaps_in_frame_num_value_allowed_flag
  const widthInMbs = reader.ueUpTo(MAX_DIMENSION / 16, 'pic_width_in_mbs_minus1') + 1;
  const heightInMapUnits = reader.ueUpTo(MAX_DIMENSION / 16, 'pic_height_in_map_units_minus1') + 1;
  const frameMbsOnly = reader.flag();
  if (!frameMbsOnly) reader.skip(1); // mb_adaptive_frame_field_flag
  reader.skip(1); // direct_8x8_inference_flag
  const mapUnitHeight = frameMbsOnly ? 1 : 2;
  const crop = readCropping(reader, format.separatePlanes ? 0 : format.chromaFormatIdc, mapUnitHeight);
  const width = widthInMbs * 16 - crop.width;
  const height = heightInMapUnits * mapUnitHeight * 16 - crop.height;
  if (width <= 0 || height <= 0) throw new ProtocolError('H264_SPS', `picture of ${width}x${height} after cropping`, reader.byteOffset);
  const vui = reader.flag() ? readVui(reader) : NO_VUI;
  return {
    id,
    profileIdc,
    constraints,
    levelIdc,
    chromaFormatIdc: format.chromaFormatIdc,
    bitDepthLuma: format.luma,
    bitDepthChroma: format.chroma,
    picOrderCntType,
    frameMbsOnly,
    width,
    height,
    ...vui,
    hasReordering: mayReorder(profileIdc, constraints, picOrderCntType, vui.maxReorderFrames),
  };
}

/** `pic_parameter_set_id` and `seq_parameter_set_id` of a PPS NAL unit. */
export function parseH264PpsIds(unit: Uint8Array): { readonly id: number; readonly spsId: number } {
  if (unit.length < 2 || h264NalType(unit[0] ?? 0) !== H264NalType.PPS)
    throw new ProtocolError('H264_PPS', 'not a picture parameter set', 0);
  const reader = new BitReader(unescapeRbsp(unit, 1));
  return { id: reader.ueUpTo(MAX_PPS_ID, 'pic_parameter_set_id'), spsId: reader.ueUpTo(MAX_SPS_ID, 'seq_parameter_set_id') };
}

function mayReorder(profileIdc: number, constraints: number, picOrderCntType: number, maxReorderFrames: number | null): boolean {
  if (maxReorderFrames !== null) return maxReorderFrames > 0;
  if (picOrderCntType === 2 || profileIdc === BASELINE_PROFILE) return false;
  return !(INTRA_CAPABLE_PROFILES.has(profileIdc) && (constraints & CONSTRAINT_SET3) !== 0);
}

function readChromaFormat(reader: BitReader): { chromaFormatIdc: number; separatePlanes: boolean; luma: number; chroma: number } {
  const chromaFormatIdc = reader.ueUpTo(3, 'chroma_format_idc');
  const separatePlanes = chromaFormatIdc === 3 && reader.flag();
  const luma = reader.ueUpTo(6, 'bit_depth_luma_minus8') + 8;
  const chroma = reader.ueUpTo(6, 'bit_depth_chroma_minus8') + 8;
  reader.skip(1); // qpprime_y_zero_transform_bypass_flag
  if (reader.flag()) {
    const lists = chromaFormatIdc === 3 ? 12 : 8;
    for (let list = 0; list < lists; list++) {
      if (reader.flag()) skipScalingList(reader, list < 6 ? 16 : 64);
    }
  }
  return { chromaFormatIdc, separatePlanes, luma, chroma };
}

function skipScalingList(reader: BitReader, size: number): void {
  let last = 8;
  let next = 8;
  for (let i = 0; i < size; i++) {
    if (next !== 0) next = (((last + reader.se()) % 256) + 256) % 256;
    if (next !== 0) last = next;
  }
}

function skipPicOrderCount(reader: BitReader): number {
  const type = reader.ueUpTo(2, 'pic_order_cnt_type');
  if (type === 0) {
    reader.ueUpTo(12, 'log2_max_pic_order_cnt_lsb_minus4');
  } else if (type === 1) {
    reader.skip(1); // delta_pic_order_always_zero_flag
    reader.se();
    reader.se();
    const cycle = reader.ueUpTo(255, 'num_ref_frames_in_pic_order_cnt_cycle');
    for (let i = 0; i < cycle; i++) reader.se();
  }
  return type;
}

/** Cropped pixels; `chromaArrayType` 0 for monochrome and separate planes (§7.4.2.1.1). */
function readCropping(reader: BitReader, chromaArrayType: number, mapUnitHeight: number): { width: number; height: number } {
  if (!reader.flag()) return { width: 0, height: 0 };
  const unitX = chromaArrayType === 1 || chromaArrayType === 2 ? 2 : 1;
  const unitY = (chromaArrayType === 1 ? 2 : 1) * mapUnitHeight;
  const horizontal = reader.ue() + reader.ue();
  const vertical = reader.ue() + reader.ue();
  return { width: horizontal * unitX, height: vertical * unitY };
}

function readVui(reader: BitReader): Vui {
  const sampleAspectRatio = readVuiHead(reader);
  const framerate = reader.flag() ? readTiming(reader) : 0;
  const nalHrd = reader.flag();
  if (nalHrd) skipHrd(reader);
  const vclHrd = reader.flag();
  if (vclHrd) skipHrd(reader);
  if (nalHrd || vclHrd) reader.skip(1); // low_delay_hrd_flag
  reader.skip(1); // pic_struct_present_flag
  const maxReorderFrames = reader.flag() ? readReorderFrames(reader) : null;
  return { sampleAspectRatio, framerate, maxReorderFrames };
}

/** A tick is half a frame (§E.2.1, num_units_in_tick). */
function readTiming(reader: BitReader): number {
  const unitsInTick = reader.bits(32);
  const timeScale = reader.bits(32);
  reader.skip(1); // fixed_frame_rate_flag
  return unitsInTick > 0 ? timeScale / (2 * unitsInTick) : 0;
}

function skipHrd(reader: BitReader): void {
  const cpbCount = reader.ueUpTo(31, 'cpb_cnt_minus1') + 1;
  reader.skip(8); // bit_rate_scale, cpb_size_scale
  for (let i = 0; i < cpbCount; i++) {
    reader.ue();
    reader.ue();
    reader.skip(1);
  }
  reader.skip(20); // four fields of 5 bits
}

function readReorderFrames(reader: BitReader): number {
  reader.skip(1); // motion_vectors_over_pic_boundaries_flag
  for (let i = 0; i < 4; i++) reader.ue(); // sizes per picture and macroblock, motion vector lengths
  const reorder = reader.ue();
  reader.ue(); // max_dec_frame_buffering
  return reorder;
}
