/** Sample aspect ratios as H.264 (table E-1) and H.265 (table E.1) code them. */
import type { BitReader } from '../util/bit-reader.ts';

/** Shape of one picture sample; 1:1 when the stream does not tell. */
export interface AspectRatio {
  readonly width: number;
  readonly height: number;
}

export const SQUARE: AspectRatio = { width: 1, height: 1 };

const EXTENDED_SAR = 255;

/** By `aspect_ratio_idc`; 0 is "unspecified". */
const ASPECT_RATIOS: readonly (readonly [number, number])[] = [
  [1, 1],
  [1, 1],
  [12, 11],
  [10, 11],
  [16, 11],
  [40, 33],
  [24, 11],
  [20, 11],
  [32, 11],
  [80, 33],
  [18, 11],
  [15, 11],
  [64, 33],
  [160, 99],
  [4, 3],
  [3, 2],
  [2, 1],
];

/** Reads `aspect_ratio_info_present_flag` and what follows it. */
export function readAspectRatio(reader: BitReader): AspectRatio {
  if (!reader.flag()) return SQUARE;
  const idc = reader.bits(8);
  if (idc === EXTENDED_SAR) {
    const width = reader.bits(16);
    const height = reader.bits(16);
    return width > 0 && height > 0 ? { width, height } : SQUARE;
  }
  const [width, height] = ASPECT_RATIOS[idc] ?? [1, 1];
  return { width, height };
}
