/** The parts of RTP and RTCP packets that protection needs (RFC 3550 section 5.1, RFC 5761 section 4). */
const FIXED_HEADER = 12;

/** Bytes of an RTP header with contributing sources and extension; 0 when the packet is too short or of another version. */
export function rtpHeaderLength(packet: Uint8Array): number {
  const first = packet[0];
  if (first === undefined || packet.length < FIXED_HEADER || first >> 6 !== 2) return 0;
  let length = FIXED_HEADER + 4 * (first & 0x0f);
  if ((first & 0x10) !== 0) {
    if (packet.length < length + 4) return 0;
    length += 4 + 4 * (((packet[length + 2] ?? 0) << 8) | (packet[length + 3] ?? 0));
  }
  return length <= packet.length ? length : 0;
}

/** True for RTCP among packets that share a port with RTP. */
export function isRtcp(packet: Uint8Array): boolean {
  const type = packet[1];
  return type !== undefined && type >= 192 && type <= 223;
}
