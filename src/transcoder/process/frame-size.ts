/** The size of an encode's frames. */

/** Pixels, both even: encoders take no others. */
export interface FrameSize {
  readonly width: number;
  readonly height: number;
  /** Shape of a pixel. */
  readonly sarNum: number;
  readonly sarDen: number;
}

/** An aspect ratio this close to the source's counts as equal: rounding of sizes causes up to this difference. */
const ASPECT_TOLERANCE = 0.015;
const DERIVED_MULTIPLE = 4;
const MAX_SAR_TERM = 255;

/**
 * The size of an encode of `width`×`height` (0: derived) for a source whose pixels may not be square. If one side is given the other keeps
 * the display aspect ratio with square pixels, and both are rounded up to a multiple of 4. If both are given with another aspect ratio, the
 * frame is stretched to the display aspect ratio of the source.
 */
export function frameSize(source: FrameSize, encode: { readonly width: number; readonly height: number }): FrameSize {
  if (encode.width <= 0 && encode.height <= 0) {
    return { width: even(source.width), height: even(source.height), sarNum: source.sarNum, sarDen: source.sarDen };
  }
  const display = (source.width * source.sarNum) / (source.height * source.sarDen);
  if (encode.width <= 0) return { width: multiple(encode.height * display), height: multiple(encode.height), sarNum: 1, sarDen: 1 };
  if (encode.height <= 0) return { width: multiple(encode.width), height: multiple(encode.width / display), sarNum: 1, sarDen: 1 };
  const width = even(encode.width);
  const height = even(encode.height);
  const sar = (display * height) / width;
  if (Math.abs(sar - 1) <= ASPECT_TOLERANCE) return { width, height, sarNum: 1, sarDen: 1 };
  return { width, height, ...fraction(sar) };
}

/** Planes with half the resolution need even sides. */
function even(value: number): number {
  return Math.max(2, value + (value % 2));
}

function multiple(value: number): number {
  return Math.max(DERIVED_MULTIPLE, Math.ceil(Math.round(value) / DERIVED_MULTIPLE) * DERIVED_MULTIPLE);
}

/** The best fraction with terms that every bitstream can write. */
function fraction(value: number): { sarNum: number; sarDen: number } {
  let best = { sarNum: 1, sarDen: 1 };
  let error = Number.POSITIVE_INFINITY;
  for (let sarDen = 1; sarDen <= MAX_SAR_TERM; sarDen += 1) {
    const sarNum = Math.min(MAX_SAR_TERM, Math.max(1, Math.round(value * sarDen)));
    const off = Math.abs(sarNum / sarDen - value);
    if (off < error - 1e-9) {
      best = { sarNum, sarDen };
      error = off;
    }
  }
  return best;
}
