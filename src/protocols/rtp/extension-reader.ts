/** Finds header extensions of received packets, RFC 8285 in both forms. */

const FIXED_LENGTH = 12;
const ONE_BYTE_PROFILE = 0xbe_de;
/** The lower four bits are the application's. */
const TWO_BYTE_PROFILE = 0x1_00;
const STOP_ID = 15;

/**
 * The value of extension `id` in a packet whose header `parseRtpPacket` accepted; null when it is absent. What is cut off
 * counts as absent.
 */
export function findExtension(packet: Uint8Array, id: number): Uint8Array | null {
  const first = packet[0] ?? 0;
  if ((first & 0x10) === 0) return null;
  const head = FIXED_LENGTH + (first & 0xf) * 4;
  const profile = ((packet[head] ?? 0) << 8) | (packet[head + 1] ?? 0);
  const end = Math.min(packet.length, head + 4 + (((packet[head + 2] ?? 0) << 8) | (packet[head + 3] ?? 0)) * 4);
  if (profile === ONE_BYTE_PROFILE) return findShort(packet, head + 4, end, id);
  return profile >> 4 === TWO_BYTE_PROFILE ? findLong(packet, head + 4, end, id) : null;
}

function findShort(packet: Uint8Array, start: number, end: number, id: number): Uint8Array | null {
  for (let at = start; at < end; ) {
    const byte = packet[at] ?? 0;
    at += 1;
    if (byte === 0) continue;
    const found = byte >> 4;
    if (found === STOP_ID) return null;
    const length = (byte & 0xf) + 1;
    if (found === id) return at + length <= end ? packet.subarray(at, at + length) : null;
    at += length;
  }
  return null;
}

function findLong(packet: Uint8Array, start: number, end: number, id: number): Uint8Array | null {
  for (let at = start; at + 1 < end; ) {
    const found = packet[at] ?? 0;
    if (found === 0) {
      at += 1;
      continue;
    }
    const length = packet[at + 1] ?? 0;
    at += 2;
    if (found === id) return at + length <= end ? packet.subarray(at, at + length) : null;
    at += length;
  }
  return null;
}
