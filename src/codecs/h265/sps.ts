/** Parameter sets of H.265, ISO/IEC 23008-2 §7.3.2. */
import { BitReader } from '../../util/bit-reader.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { AspectRatio } from '../aspect-ratio.ts';
import { unescapeRbsp } from '../nal/rbsp.ts';
import { H265NalType, h265NalType } from './nal-type.ts';
import { type ProfileTierLevel, readProfileTierLevel } from './profile-tier-level.ts';
import { skipScalingLists, skipShortTermRefPicSets } from './sps-lists.ts';
import { NO_VUI, readVui } from './vui.ts';

/** Fields of a sequence parameter set. */
export interface H265Sps {
  readonly id: number;
  readonly vpsId: number;
  readonly profile: ProfileTierLevel;
  /** Temporal sub-layers, 1 to 7. */
  readonly temporalLayers: number;
  readonly temporalIdNested: boolean;
  /** 0 monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4. */
  readonly chromaFormatIdc: number;
  readonly bitDepthLuma: number;
  readonly bitDepthChroma: number;
  /** Pixels, inside the conformance window. */
  readonly width: number;
  readonly height: number;
  readonly sampleAspectRatio: AspectRatio;
  /** Frames per second by the VUI timing; 0 if unknown. */
  readonly framerate: number;
  readonly minSpatialSegmentation: number;
  /** `sps_max_num_reorder_pics` of the highest sub-layer. */
  readonly maxReorderFrames: number;
  readonly hasReordering: boolean;
}

const NAL_HEADER_LENGTH = 2;
const MAX_DIMENSION = 32_768;
const MAX_SPS_ID = 15;
const MAX_PPS_ID = 63;
const MAX_LONG_TERM_REFS = 32;

/** Parses a whole SPS NAL unit (header included). */
export function parseH265Sps(unit: Uint8Array): H265Sps {
  const reader = openUnit(unit, H265NalType.SPS, 'H265_SPS');
  const vpsId = reader.bits(4);
  const maxSubLayersMinus1 = reader.bits(3);
  if (maxSubLayersMinus1 === 7) throw new ProtocolError('H265_SPS', 'more than 7 temporal sub-layers', NAL_HEADER_LENGTH);
  const temporalIdNested = reader.flag();
  const profile = readProfileTierLevel(reader, maxSubLayersMinus1);
  const id = reader.ueUpTo(MAX_SPS_ID, 'sps_seq_parameter_set_id');
  const chromaFormatIdc = reader.ueUpTo(3, 'chroma_format_idc');
  if (chromaFormatIdc === 3) reader.skip(1); // separate_colour_plane_flag
  const codedWidth = reader.ueUpTo(MAX_DIMENSION, 'pic_width_in_luma_samples');
  const codedHeight = reader.ueUpTo(MAX_DIMENSION, 'pic_height_in_luma_samples');
  const crop = readConformanceWindow(reader, chromaFormatIdc);
  const width = codedWidth - crop.width;
  const height = codedHeight - crop.height;
  if (width <= 0 || height <= 0) throw new ProtocolError('H265_SPS', `picture of ${width}x${height} after cropping`, reader.byteOffset);
  const bitDepthLuma = reader.ueUpTo(8, 'bit_depth_luma_minus8') + 8;
  const bitDepthChroma = reader.ueUpTo(8, 'bit_depth_chroma_minus8') + 8;
  const pocLsbBits = reader.ueUpTo(12, 'log2_max_pic_order_cnt_lsb_minus4') + 4;
  const maxReorderFrames = readSubLayerOrdering(reader, maxSubLayersMinus1);
  skipCodingTools(reader, pocLsbBits);
  const vui = reader.flag() ? readVui(reader, maxSubLayersMinus1) : NO_VUI;
  return {
    id,
    vpsId,
    profile,
    temporalLayers: maxSubLayersMinus1 + 1,
    temporalIdNested,
    chromaFormatIdc,
    bitDepthLuma,
    bitDepthChroma,
    width,
    height,
    ...vui,
    maxReorderFrames,
    hasReordering: maxReorderFrames > 0,
  };
}

/** `vps_video_parameter_set_id` of a VPS NAL unit. */
export function parseH265VpsId(unit: Uint8Array): number {
  return openUnit(unit, H265NalType.VPS, 'H265_VPS').bits(4);
}

/** `pps_pic_parameter_set_id` and `pps_seq_parameter_set_id` of a PPS NAL unit. */
export function parseH265PpsIds(unit: Uint8Array): { readonly id: number; readonly spsId: number } {
  const reader = openUnit(unit, H265NalType.PPS, 'H265_PPS');
  return { id: reader.ueUpTo(MAX_PPS_ID, 'pps_pic_parameter_set_id'), spsId: reader.ueUpTo(MAX_SPS_ID, 'pps_seq_parameter_set_id') };
}

function openUnit(unit: Uint8Array, type: number, code: string): BitReader {
  if (unit.length <= NAL_HEADER_LENGTH || h265NalType(unit[0] ?? 0) !== type) {
    throw new ProtocolError(code, `not a NAL unit of type ${type}`, 0);
  }
  return new BitReader(unescapeRbsp(unit, NAL_HEADER_LENGTH));
}

function readConformanceWindow(reader: BitReader, chromaFormatIdc: number): { width: number; height: number } {
  if (!reader.flag()) return { width: 0, height: 0 };
  const unitX = chromaFormatIdc === 1 || chromaFormatIdc === 2 ? 2 : 1;
  const unitY = chromaFormatIdc === 1 ? 2 : 1;
  const horizontal = reader.ue() + reader.ue();
  const vertical = reader.ue() + reader.ue();
  return { width: horizontal * unitX, height: vertical * unitY };
}

function readSubLayerOrdering(reader: BitReader, maxSubLayersMinus1: number): number {
  const perLayer = reader.flag();
  let reorder = 0;
  for (let layer = perLayer ? 0 : maxSubLayersMinus1; layer <= maxSubLayersMinus1; layer++) {
    reader.ue(); // sps_max_dec_pic_buffering_minus1
    reorder = reader.ueUpTo(16, 'sps_max_num_reorder_pics');
    reader.ue(); // sps_max_latency_increase_plus1
  }
  return reorder;
}

/** From `log2_min_luma_coding_block_size_minus3` to `strong_intra_smoothing_enabled_flag`. */
function skipCodingTools(reader: BitReader, pocLsbBits: number): void {
  for (let i = 0; i < 6; i++) reader.ue(); // block sizes and transform hierarchy depths
  if (reader.flag() && reader.flag()) skipScalingLists(reader);
  reader.skip(2); // amp_enabled_flag, sample_adaptive_offset_enabled_flag
  if (reader.flag()) {
    reader.skip(8); // PCM bit depths
    reader.ue();
    reader.ue();
    reader.skip(1);
  }
  skipShortTermRefPicSets(reader);
  if (reader.flag()) {
    const count = reader.ueUpTo(MAX_LONG_TERM_REFS, 'num_long_term_ref_pics_sps');
    reader.skip(count * (pocLsbBits + 1));
  }
  reader.skip(2); // sps_temporal_mvp_enabled_flag, strong_intra_smoothing_enabled_flag
}
