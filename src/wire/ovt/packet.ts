/**
 * The packets of OVT: the protocol by which OvenMediaEngine's nodes relay streams. All integers are big-endian.
 *
 *   0                   1                   2                   3
 *   0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *  |v=1|M|  zero   |    type       |           sequence            |
 *  |                         timestamp                             |
 *  |                          64 bits                              |
 *  |                         session id                            |
 *  |        payload length         |  payload …
 *
 * A message or media packet that does not fit is split; the last part has the marker.
 */
import { ProtocolError } from '../../util/protocol-error.ts';

/** Bytes before the payload. */
export const PACKET_HEADER_LENGTH = 18;
/** Bytes of a packet, header included. */
const MAX_PACKET = 32_768;
/** Bytes; longer contents are split into several packets. */
export const MAX_PAYLOAD = MAX_PACKET - PACKET_HEADER_LENGTH;

const VERSION_MASK = 0xc0;
const VERSION_BITS = 0x40;
const MARKER_BIT = 0x20;

/** The byte at 1: the type of the payload. */
export const OvtPayloadType = { REQUEST: 10, RESPONSE: 20, MEDIA: 30 } as const;
/** Any value of `OvtPayloadType`. */
export type OvtPayloadType = (typeof OvtPayloadType)[keyof typeof OvtPayloadType];

/** The parsed fields of a header. */
export interface PacketHeader {
  /** Null: an unknown type. */
  readonly type: OvtPayloadType | null;
  /** The last part of its message or media packet. */
  readonly marker: boolean;
  readonly payloadLength: number;
}

/** The packets that a reader accepts. */
export interface TakenPackets {
  /** Accepts unknown types, too, which later versions may have; readers skip them. */
  readonly anyType?: boolean;
}

/** Reads the 18 bytes at `at`. Throws `OVT_VERSION`, `OVT_TYPE` or `OVT_LENGTH`. */
export function parsePacketHeader(data: Uint8Array, at: number, { anyType }: TakenPackets = {}): PacketHeader {
  const first = data[at] ?? 0;
  if ((first & VERSION_MASK) !== VERSION_BITS) throw new ProtocolError('OVT_VERSION', `version ${first >> 6}, 1 expected`, at);
  const number = data[at + 1] ?? 0;
  const type = isPayloadType(number) ? number : null;
  if (type === null && anyType !== true) throw new ProtocolError('OVT_TYPE', `payload type ${number}`, at + 1);
  const payloadLength = ((data[at + 16] ?? 0) << 8) | (data[at + 17] ?? 0);
  if (payloadLength > MAX_PAYLOAD) {
    throw new ProtocolError('OVT_LENGTH', `payload of ${payloadLength} bytes, at most ${MAX_PAYLOAD} expected`, at + 16);
  }
  return { type, marker: (first & MARKER_BIT) !== 0, payloadLength };
}

function isPayloadType(type: number): type is OvtPayloadType {
  return type === OvtPayloadType.REQUEST || type === OvtPayloadType.RESPONSE || type === OvtPayloadType.MEDIA;
}

/** Writes payloads of one type as packets, splitting long payloads. One payload at a time. */
export class PacketWriter {
  readonly #type: OvtPayloadType;
  readonly #sessionId: number;
  #out: Buffer = Buffer.alloc(0);
  #at = 0;
  /** The end of the packet that is being written. */
  #packetEnd = 0;
  /** Payload bytes not yet promised to a packet. */
  #left = 0;
  #sequence = 0;
  #timestamp = 0;

  constructor(type: OvtPayloadType, sessionId: number) {
    this.#type = type;
    this.#sessionId = sessionId;
  }

  /** Begins a payload of `length` bytes, at least 1; `sequence` is the number of its first packet, of which the low 16 bits are sent. */
  begin(length: number, sequence: number, timestamp: number): void {
    const packets = Math.ceil(length / MAX_PAYLOAD);
    this.#out = Buffer.allocUnsafe(length + packets * PACKET_HEADER_LENGTH);
    this.#at = 0;
    this.#packetEnd = 0;
    this.#left = length;
    this.#sequence = sequence;
    this.#timestamp = timestamp;
  }

  /** Adds bytes `start` to `end` of `bytes` to the payload. */
  put(bytes: Uint8Array, start = 0, end = bytes.length): void {
    for (let from = start; from < end; ) {
      if (this.#at === this.#packetEnd) this.#beginPacket();
      const count = Math.min(end - from, this.#packetEnd - this.#at);
      this.#out.set(from === 0 && count === bytes.length ? bytes : bytes.subarray(from, from + count), this.#at);
      this.#at += count;
      from += count;
    }
  }

  /** The packets of the payload, back to back. All promised bytes must have been `put`. */
  finish(): Buffer {
    if (this.#left !== 0 || this.#at !== this.#out.length) throw new Error('an OVT payload was not as long as it was said to be');
    return this.#out;
  }

  /** Number of the packet after the last one written. */
  get nextSequence(): number {
    return this.#sequence & 0xffff;
  }

  #beginPacket(): void {
    const length = Math.min(this.#left, MAX_PAYLOAD);
    this.#left -= length;
    const out = this.#out;
    const at = this.#at;
    out[at] = VERSION_BITS | (this.#left === 0 ? MARKER_BIT : 0);
    out[at + 1] = this.#type;
    out.writeUInt16BE(this.#sequence & 0xffff, at + 2);
    writeInt64(out, this.#timestamp, at + 4);
    out.writeUInt32BE(this.#sessionId, at + 12);
    out.writeUInt16BE(length, at + 16);
    this.#sequence += 1;
    this.#at = at + PACKET_HEADER_LENGTH;
    this.#packetEnd = this.#at + length;
  }
}

const WORD = 2 ** 32;

/** Writes a whole number in two's complement. */
export function writeInt64(out: Buffer, value: number, at: number): void {
  out.writeInt32BE(Math.floor(value / WORD) | 0, at);
  out.writeUInt32BE(value >>> 0, at + 4);
}

/** Reads a signed number. Throws `OVT_NUMBER` if a double cannot hold it exactly. */
export function readInt64(data: DataView, at: number): number {
  const value = data.getInt32(at) * WORD + data.getUint32(at + 4);
  if (!Number.isSafeInteger(value)) throw new ProtocolError('OVT_NUMBER', 'a time of more than 53 bits', at);
  return value;
}
