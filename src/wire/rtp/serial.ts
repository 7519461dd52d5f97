/** Numbers that wrap (RFC 1982) as RTP uses them. */

/** From `from` to `to` around the circle of 16 bits, -32768 to 32767. */
export function sequenceDistance(from: number, to: number): number {
  return ((to - from) << 16) >> 16;
}
