/**
 * RTP packets, RFC 3550 §5.1.
 *
 *  version 2 | padding 1 | extension 1 | CSRC count 4 | marker 1 | payload type 7 | sequence 16 | timestamp 32 | SSRC 32 |
 *  CSRC 32 × count | [profile 16 | length 16 | extension] | payload | [padding … count 8]
 */
import { ProtocolError } from '../../util/protocol-error.ts';

/** A packet without its CSRCs, its header extension and its padding. */
export interface RtpPacket {
  readonly marker: boolean;
  readonly payloadType: number;
  /** 16 bits. */
  readonly sequence: number;
  /** 32 bits, in the clock of the payload type. */
  readonly timestamp: number;
  readonly ssrc: number;
  /** A view into the parsed packet. */
  readonly payload: Uint8Array;
}

const FIXED_LENGTH = 12;
const VERSION = 2;

/** Parses a packet. Throws `RTP` when it is cut off or of another version. */
export function parseRtpPacket(data: Uint8Array): RtpPacket {
  if (data.length < FIXED_LENGTH)
    throw new ProtocolError('RTP', `packet of ${data.length} bytes, at least ${FIXED_LENGTH} expected`, data.length);
  const first = data[0] ?? 0;
  const second = data[1] ?? 0;
  if (first >> 6 !== VERSION) throw new ProtocolError('RTP', `version ${first >> 6}`, 0);
  let start = FIXED_LENGTH + (first & 0xf) * 4;
  if ((first & 0x10) !== 0) start += 4 + (((data[start + 2] ?? 0) << 8) | (data[start + 3] ?? 0)) * 4;
  const padding = (first & 0x20) === 0 ? 0 : (data[data.length - 1] ?? 0);
  if (start + padding > data.length)
    throw new ProtocolError('RTP', `header and padding of ${start + padding} bytes in ${data.length}`, start);
  return {
    marker: (second & 0x80) !== 0,
    payloadType: second & 0x7f,
    sequence: ((data[2] ?? 0) << 8) | (data[3] ?? 0),
    timestamp: u32(data, 4),
    ssrc: u32(data, 8),
    payload: data.subarray(start, data.length - padding),
  };
}

function u32(data: Uint8Array, at: number): number {
  return (((data[at] ?? 0) << 24) | ((data[at + 1] ?? 0) << 16) | ((data[at + 2] ?? 0) << 8) | (data[at + 3] ?? 0)) >>> 0;
}

/** Sequence numbers wrap (RFC 1982): from `from` to `to` around the circle of 16 bits, -32768 to 32767. */
export function sequenceDistance(from: number, to: number): number {
  return ((to - from) << 16) >> 16;
}
