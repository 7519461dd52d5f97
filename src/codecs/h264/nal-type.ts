/** NAL unit types of H.264 (ISO/IEC 14496-10 table 7-1) that the server distinguishes. */
export const H264NalType = {
  SLICE: 1,
  SLICE_PARTITION_A: 2,
  IDR: 5,
  SEI: 6,
  SPS: 7,
  PPS: 8,
  AUD: 9,
  END_OF_SEQUENCE: 10,
  END_OF_STREAM: 11,
  FILLER: 12,
  SPS_EXTENSION: 13,
} as const;
/** Any value of `H264NalType`; the field on the wire has 5 bits and may have other values. */
export type H264NalType = (typeof H264NalType)[keyof typeof H264NalType];

/** `nal_unit_type` from the first byte of a unit. */
export function h264NalType(firstByte: number): number {
  return firstByte & 0x1f;
}
