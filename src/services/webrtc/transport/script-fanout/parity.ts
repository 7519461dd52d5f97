/**
 * Forward error correction (RFC 5109, one protection level): what packets of one frame come to together. Computed once for
 * all viewers; what differs between them is filled in when it is sent.
 *
 *      0                   1                   2                   3
 *     |E|L|P|X|  CC   |M| PT recovery |            SN base            |
 *     |                          TS recovery                          |
 *     |        length recovery        |       protection length       |
 *     |                mask, 16 bits; 48 when L is set …              |
 */

/** Bits of the two forms of a mask. */
const SHORT_MASK = 16;
const LONG_MASK = 48;
/** Packets that one parity stands for. */
const PROTECTED = 10;
const HEADER = 12;

/** What one parity protects, independent of any viewer's sequence numbers and timestamps. */
export interface Parity {
  /** The first packet of the frame that may be protected; `offsets` count from it. */
  readonly first: number;
  readonly offsets: readonly number[];
  /** Of one of them the marker bit is set. */
  readonly marker: boolean;
  /** All payloads combined with exclusive or, as long as the longest. */
  readonly payload: Uint8Array;
  /** Their lengths combined likewise need the header extension: kept one by one. */
  readonly lengths: readonly number[];
}

/** What all packets of one viewer's stream have in common, and the frame's. */
export interface ParityContext {
  readonly extension: Uint8Array;
  readonly payloadType: number;
  readonly timestamp: number;
  /** Number of packet `first`. */
  readonly sequence: number;
}

/** Parities of a frame. Neighbours are protected by different ones, so that a burst of losses can be made good. */
export function makeParities(payloads: readonly Uint8Array[], marker: boolean): Parity[] {
  const parities: Parity[] = [];
  for (let first = 0; first < payloads.length; first += LONG_MASK) {
    const block = payloads.slice(first, first + LONG_MASK);
    const step = Math.ceil(block.length / PROTECTED);
    for (let offset = 0; offset < step; offset += 1) {
      const offsets = [...block.keys()].filter((n) => n % step === offset);
      const mine = offsets.map((n) => block[n] ?? new Uint8Array(0));
      const payload = new Uint8Array(Math.max(...mine.map(({ length }) => length)));
      for (const one of mine) for (let at = 0; at < one.length; at += 1) payload[at] = (payload[at] ?? 0) ^ (one[at] ?? 0);
      const hasMarker = marker && first + (offsets.at(-1) ?? 0) + 1 === payloads.length;
      parities.push({ first, offsets, marker: hasMarker, payload, lengths: mine.map(({ length }) => length) });
    }
  }
  return parities;
}

/**
 * The payload of a parity. The parts that all packets have alike remain where an odd number of them is combined, and vanish
 * where it is even. Send time and transport-wide number count as zeros: receivers pass over them here.
 */
export function serializeParity(parity: Parity, { extension, payloadType, timestamp, sequence }: ParityContext): Buffer {
  const { offsets, payload, lengths, marker } = parity;
  const odd = offsets.length % 2 === 1;
  const wide = (offsets.at(-1) ?? 0) >= SHORT_MASK;
  const mask = (wide ? LONG_MASK : SHORT_MASK) / 8;
  const out = Buffer.alloc(HEADER + mask + extension.length + payload.length);
  out[0] = (wide ? 0x40 : 0) | (odd && extension.length > 0 ? 0x10 : 0);
  out[1] = (marker ? 0x80 : 0) | (odd ? payloadType : 0);
  out.writeUInt16BE(sequence & 0xffff, 2);
  out.writeUInt32BE(odd ? timestamp : 0, 4);
  out.writeUInt16BE(
    lengths.reduce((sum, length) => sum ^ (extension.length + length), 0),
    8,
  );
  out.writeUInt16BE(extension.length + payload.length, 10);
  for (const n of offsets) out[HEADER + (n >> 3)] = (out[HEADER + (n >> 3)] ?? 0) | (0x80 >> (n & 7));
  if (odd) out.set(extension, HEADER + mask);
  out.set(payload, HEADER + mask + extension.length);
  return out;
}
