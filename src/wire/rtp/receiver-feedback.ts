/** A receiver's requests to a sender: RFC 4585 §6, RFC 5104 §4.3.1, draft-alvestrand-rmcat-remb §2.2. */
import { ByteWriter } from '../../util/byte-writer.ts';
import { sequenceDistance } from './rtp-packet.ts';

const TRANSPORT_FEEDBACK = 205;
const PAYLOAD_FEEDBACK = 206;
const Format = { NACK: 1, PLI: 1, FIR: 4, APPLICATION: 15 } as const;
const REMB = 0x5245_4d42;
/** Bits of the mantissa of a REMB. */
const MANTISSA_BITS = 18;
/** Numbers that one item of a NACK can name: the first and 16 behind it. */
const ITEM_SPAN = 16;

/** Asks for packets again; `sequences` oldest first, at least one. */
export function buildNack(ownSsrc: number, mediaSsrc: number, sequences: readonly number[]): Uint8Array {
  const items: { readonly first: number; mask: number }[] = [];
  for (const sequence of sequences) {
    const last = items.at(-1);
    const behind = last === undefined ? 0 : sequenceDistance(last.first, sequence);
    if (last !== undefined && behind >= 1 && behind <= ITEM_SPAN) last.mask |= 1 << (behind - 1);
    else items.push({ first: sequence, mask: 0 });
  }
  const writer = head(Format.NACK, TRANSPORT_FEEDBACK, 2 + items.length, ownSsrc, mediaSsrc);
  for (const { first, mask } of items) writer.u16(first).u16(mask);
  return writer.finish();
}

/** Reports that the decoder needs a keyframe. */
export function buildPli(ownSsrc: number, mediaSsrc: number): Uint8Array {
  return head(Format.PLI, PAYLOAD_FEEDBACK, 2, ownSsrc, mediaSsrc).finish();
}

/** Asks for a keyframe; `number` counts the requests, 8 bits. */
export function buildFir(ownSsrc: number, mediaSsrc: number, number: number): Uint8Array {
  return head(Format.FIR, PAYLOAD_FEEDBACK, 4, ownSsrc, 0)
    .u32(mediaSsrc)
    .u8(number & 0xff)
    .u24(0)
    .finish();
}

/** Reports the rate at which all `ssrcs` together can be received, bits per second. */
export function buildRemb(ownSsrc: number, bitsPerSecond: number, ssrcs: readonly number[]): Uint8Array {
  let exponent = 0;
  let mantissa = Math.max(0, Math.floor(bitsPerSecond));
  while (mantissa >= 2 ** MANTISSA_BITS) {
    mantissa = Math.floor(mantissa / 2);
    exponent += 1;
  }
  const writer = head(Format.APPLICATION, PAYLOAD_FEEDBACK, 4 + ssrcs.length, ownSsrc, 0);
  writer
    .u32(REMB)
    .u8(ssrcs.length)
    .u24((exponent << MANTISSA_BITS) | mantissa);
  for (const ssrc of ssrcs) writer.u32(ssrc);
  return writer.finish();
}

/** `words`: number of words behind the first. */
function head(format: number, type: number, words: number, ownSsrc: number, mediaSsrc: number): ByteWriter {
  return new ByteWriter(4 + words * 4)
    .u8(0x80 | format)
    .u8(type)
    .u16(words)
    .u32(ownSsrc)
    .u32(mediaSsrc);
}
