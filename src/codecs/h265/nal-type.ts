/** NAL unit types of H.265 (ISO/IEC 23008-2 table 7-1) that the server distinguishes. */
export const H265NalType = {
  /** First and last type of intra random access pictures (BLA, IDR, CRA and two reserved). */
  IRAP_FIRST: 16,
  IRAP_LAST: 23,
  /** Slice segments have the types 0 to 31. */
  SLICE_LAST: 31,
  VPS: 32,
  SPS: 33,
  PPS: 34,
  AUD: 35,
  FILLER: 38,
  SEI_PREFIX: 39,
  SEI_SUFFIX: 40,
} as const;
/** Any value of `H265NalType`; the field on the wire has 6 bits and may have other values. */
export type H265NalType = (typeof H265NalType)[keyof typeof H265NalType];

/** `nal_unit_type` from the first byte of a unit. */
export function h265NalType(firstByte: number): number {
  return (firstByte >> 1) & 0x3f;
}
