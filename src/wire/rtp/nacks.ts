/** Generic NACKs inside a compound RTCP packet (RFC 4585 section 6.2.1). */
const TRANSPORT_FEEDBACK = 205;
const GENERIC_NACK = 1;
/** Limit of losses handled from one feedback packet. */
const MAX_LOSSES = 512;

/** Packets that a viewer requests again, 16-bit sequence numbers. */
export interface Nack {
  /** The stream that lost packets. */
  readonly ssrc: number;
  readonly sequences: readonly number[];
}

/** The NACKs, and whether the compound has other packets. Reading ends at a broken packet. */
export function readNacks(packet: Uint8Array): { readonly nacks: readonly Nack[]; readonly other: boolean } {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  const nacks: Nack[] = [];
  let other = false;
  let at = 0;
  while (at + 4 <= packet.length) {
    const end = at + 4 * (view.getUint16(at + 2) + 1);
    if (end > packet.length) return { nacks, other: true };
    const isNack = view.getUint8(at + 1) === TRANSPORT_FEEDBACK && (view.getUint8(at) & 0x1f) === GENERIC_NACK && end - at >= 12;
    if (isNack) nacks.push(readNack(view, at, end));
    else other = true;
    at = end;
  }
  return { nacks, other };
}

function readNack(view: DataView, start: number, end: number): Nack {
  const sequences: number[] = [];
  for (let at = start + 12; at + 4 <= end && sequences.length < MAX_LOSSES; at += 4) {
    const first = view.getUint16(at);
    const mask = view.getUint16(at + 2);
    sequences.push(first);
    for (let bit = 0; bit < 16; bit += 1) if (((mask >> bit) & 1) !== 0) sequences.push((first + bit + 1) & 0xffff);
  }
  return { ssrc: view.getUint32(start + 8), sequences };
}
