/** The lists inside an H.265 SPS that must be parsed to be skipped: scaling lists and reference picture sets. */
import type { BitReader } from '../../util/bit-reader.ts';

const MAX_REF_PIC_SETS = 64;
const MAX_PICTURES = 16;

/** scaling_list_data, ISO/IEC 23008-2 §7.3.4. */
export function skipScalingLists(reader: BitReader): void {
  for (let size = 0; size < 4; size++) {
    // 32x32 lists are coded for luma only.
    const step = size === 3 ? 3 : 1;
    for (let matrix = 0; matrix < 6; matrix += step) skipScalingList(reader, size);
  }
}

function skipScalingList(reader: BitReader, size: number): void {
  if (!reader.flag()) {
    reader.ue(); // scaling_list_pred_matrix_id_delta
    return;
  }
  const coefficients = Math.min(64, 1 << (4 + (size << 1)));
  if (size > 1) reader.se(); // scaling_list_dc_coef_minus8
  for (let i = 0; i < coefficients; i++) reader.se();
}

/** num_short_term_ref_pic_sets and the sets, ISO/IEC 23008-2 §7.3.7. */
export function skipShortTermRefPicSets(reader: BitReader): void {
  const count = reader.ueUpTo(MAX_REF_PIC_SETS, 'num_short_term_ref_pic_sets');
  let previousPictures = 0;
  for (let index = 0; index < count; index++) previousPictures = skipRefPicSet(reader, index, previousPictures);
}

/** Skips one set and returns its number of reference pictures; a set may be coded as a change of the previous set. */
function skipRefPicSet(reader: BitReader, index: number, previousPictures: number): number {
  if (index > 0 && reader.flag()) {
    reader.skip(1); // delta_rps_sign
    reader.ue(); // abs_delta_rps_minus1
    let pictures = 0;
    for (let i = 0; i <= previousPictures; i++) {
      const used = reader.flag();
      if (used || reader.flag()) pictures += 1;
    }
    return pictures;
  }
  const negative = reader.ueUpTo(MAX_PICTURES, 'num_negative_pics');
  const positive = reader.ueUpTo(MAX_PICTURES, 'num_positive_pics');
  for (let i = 0; i < negative + positive; i++) {
    reader.ue(); // delta_poc_minus1
    reader.skip(1); // used_by_curr_pic_flag
  }
  return negative + positive;
}
