/** Finds header extensions of received packets, RFC 8285 in both forms. */

const FIXED_LENGTH = 12;
const ONE_BYTE_PROFILE = 0xbe_de;
/** The lower four bits are the application's. */
const TWO_BYTE_PROFILE = 0x1_00;
const STOP_ID = 15;
/** Lengths of values are below this. */
const LENGTHS = 256;

/**
 * The value of extension `id` in a packet whose header `parseRtpPacket` accepted; null if it is absent. A truncated extension counts as
 * absent.
 */
export function findExtension(packet: Uint8Array, id: number): Uint8Array | null {
  const place = locate(packet, id);
  if (place < 0) return null;
  const at = Math.floor(place / LENGTHS);
  return packet.subarray(at, at + (place % LENGTHS));
}

/** The first 16 bits of extension `id`; -1 when it is absent or shorter. */
export function readExtension16(packet: Uint8Array, id: number): number {
  const place = locate(packet, id);
  if (place < 0 || place % LENGTHS < 2) return -1;
  const at = Math.floor(place / LENGTHS);
  return ((packet[at] ?? 0) << 8) | (packet[at + 1] ?? 0);
}

/** Where the value begins and its length, in one number, because this is done for every packet; -1 when it is absent. */
function locate(packet: Uint8Array, id: number): number {
  const first = packet[0] ?? 0;
  if ((first & 0x10) === 0) return -1;
  const head = FIXED_LENGTH + (first & 0xf) * 4;
  const profile = ((packet[head] ?? 0) << 8) | (packet[head + 1] ?? 0);
  const end = Math.min(packet.length, head + 4 + (((packet[head + 2] ?? 0) << 8) | (packet[head + 3] ?? 0)) * 4);
  if (profile === ONE_BYTE_PROFILE) return locateShort(packet, head + 4, end, id);
  return profile >> 4 === TWO_BYTE_PROFILE ? locateLong(packet, head + 4, end, id) : -1;
}

function locateShort(packet: Uint8Array, start: number, end: number, id: number): number {
  for (let at = start; at < end; ) {
    const byte = packet[at] ?? 0;
    at += 1;
    if (byte === 0) continue;
    const found = byte >> 4;
    if (found === STOP_ID) return -1;
    const length = (byte & 0xf) + 1;
    if (found === id) return at + length <= end ? at * LENGTHS + length : -1;
    at += length;
  }
  return -1;
}

function locateLong(packet: Uint8Array, start: number, end: number, id: number): number {
  for (let at = start; at + 1 < end; ) {
    const found = packet[at] ?? 0;
    if (found === 0) {
      at += 1;
      continue;
    }
    const length = packet[at + 1] ?? 0;
    at += 2;
    if (found === id) return at + length <= end ? at * LENGTHS + length : -1;
    at += length;
  }
  return -1;
}
