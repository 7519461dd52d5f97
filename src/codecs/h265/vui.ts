/** Video usability information of H.265, ISO/IEC 23008-2 Annex E. */
import type { BitReader } from '../../util/bit-reader.ts';
import { type AspectRatio, readVuiHead, SQUARE } from '../aspect-ratio.ts';

/** The fields of the VUI that a server needs. */
export interface H265Vui {
  readonly sampleAspectRatio: AspectRatio;
  /** Frames per second; 0 if unknown. */
  readonly framerate: number;
  readonly minSpatialSegmentation: number;
}

/** Defaults without a VUI: square pixels, no frame rate. */
export const NO_VUI: H265Vui = { sampleAspectRatio: SQUARE, framerate: 0, minSpatialSegmentation: 0 };

const MAX_SPATIAL_SEGMENTATION = 4095;

/** Reads `vui_parameters()` (E.2.1) at the reader's position. `maxSubLayersMinus1` is that of the sequence parameter set. */
export function readVui(reader: BitReader, maxSubLayersMinus1: number): H265Vui {
  const sampleAspectRatio = readVuiHead(reader);
  reader.skip(3); // neutral_chroma_indication_flag, field_seq_flag, frame_field_info_present_flag
  if (reader.flag()) for (let i = 0; i < 4; i++) reader.ue(); // default display window
  const framerate = reader.flag() ? readTiming(reader, maxSubLayersMinus1) : 0;
  const minSpatialSegmentation = reader.flag() ? readRestrictions(reader) : 0;
  return { sampleAspectRatio, framerate, minSpatialSegmentation };
}

function readTiming(reader: BitReader, maxSubLayersMinus1: number): number {
  const unitsInTick = reader.bits(32);
  const timeScale = reader.bits(32);
  if (reader.flag()) reader.ue(); // vui_num_ticks_poc_diff_one_minus1
  if (reader.flag()) skipHrd(reader, maxSubLayersMinus1);
  return unitsInTick > 0 ? timeScale / unitsInTick : 0;
}

function readRestrictions(reader: BitReader): number {
  reader.skip(3); // tiles_fixed_structure, motion_vectors_over_pic_boundaries, restricted_ref_pic_lists
  const segmentation = reader.ueUpTo(MAX_SPATIAL_SEGMENTATION, 'min_spatial_segmentation_idc');
  for (let i = 0; i < 4; i++) reader.ue(); // sizes per picture and unit, motion vector lengths
  return segmentation;
}

/** hrd_parameters(1, maxSubLayersMinus1), §E.2.2. */
function skipHrd(reader: BitReader, maxSubLayersMinus1: number): void {
  const nal = reader.flag();
  const vcl = reader.flag();
  let subPicture = false;
  if (nal || vcl) {
    subPicture = reader.flag();
    if (subPicture) reader.skip(19);
    reader.skip(8); // bit_rate_scale, cpb_size_scale
    if (subPicture) reader.skip(4);
    reader.skip(15); // three delay lengths
  }
  for (let layer = 0; layer <= maxSubLayersMinus1; layer++) skipSubLayerHrd(reader, Number(nal) + Number(vcl), subPicture);
}

function skipSubLayerHrd(reader: BitReader, kinds: number, subPicture: boolean): void {
  const fixedGeneral = reader.flag();
  const fixedInCvs = fixedGeneral || reader.flag();
  let lowDelay = false;
  if (fixedInCvs)
    reader.ue(); // elemental_duration_in_tc_minus1
  else lowDelay = reader.flag();
  const cpbCount = lowDelay ? 1 : reader.ueUpTo(31, 'cpb_cnt_minus1') + 1;
  for (let i = 0; i < kinds * cpbCount; i++) {
    reader.ue();
    reader.ue();
    if (subPicture) {
      reader.ue();
      reader.ue();
    }
    reader.skip(1);
  }
}
