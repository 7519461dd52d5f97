/** Several packets in one input, so that a whole exchange is one line of the corpus. */

const PREFIX = 2;
const MAX_LENGTH = 0xffff;

/** Each packet after its length, 16 bits. */
export function joinPackets(packets: readonly Uint8Array[]): Uint8Array {
  const kept = packets.map((packet) => packet.subarray(0, MAX_LENGTH));
  const joined = Buffer.alloc(kept.reduce((sum, packet) => sum + PREFIX + packet.length, 0));
  let at = 0;
  for (const packet of kept) {
    joined.writeUInt16BE(packet.length, at);
    joined.set(packet, at + PREFIX);
    at += PREFIX + packet.length;
  }
  return joined;
}

/** The packets of an input made by `joinPackets`, each in its own memory; a last, cut packet is shorter than its length. */
export function splitPackets(input: Uint8Array): Uint8Array[] {
  const packets: Uint8Array[] = [];
  for (let at = 0; at + PREFIX <= input.length; ) {
    const length = ((input[at] ?? 0) << 8) | (input[at + 1] ?? 0);
    packets.push(input.slice(at + PREFIX, at + PREFIX + length));
    at += PREFIX + length;
  }
  return packets;
}
