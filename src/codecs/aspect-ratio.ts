/** The head of the VUI with the sample aspect ratio, as H.264 (table E-1) and H.265 (table E.1) code it. */
import type { BitReader } from '../util/bit-reader.ts';

/** Shape of a pixel; 1:1 if the stream does not say. */
export interface AspectRatio {
  readonly width: number;
  readonly height: number;
}

/** Square pixels, also for streams without an aspect ratio, or with 0. */
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

/**
 * Reads the head of the VUI, which both codecs share up to the chroma sample location, and returns the values in use (H.264 E.1.1, H.265
 * E.2.1).
 */
export function readVuiHead(reader: BitReader): AspectRatio {
  const sampleAspectRatio = readAspectRatio(reader);
  if (reader.flag()) reader.skip(1); // overscan
  if (reader.flag()) {
    reader.skip(4); // video_format, video_full_range_flag
    if (reader.flag()) reader.skip(24); // colour description
  }
  if (reader.flag()) {
    reader.ue(); // chroma sample location, top and bottom field
    reader.ue();
  }
  return sampleAspectRatio;
}

/** Reads `aspect_ratio_info_present_flag` and the fields that it announces. */
function readAspectRatio(reader: BitReader): AspectRatio {
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
