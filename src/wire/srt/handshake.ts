/**
 * Handshake packets, draft-sharabayko-srt-01 §3.2.1.
 *
 *  0                   1                   2                   3
 *  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 * +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 * |                            version                            |
 * |        encryption field       |        extension field        |
 * |                initial packet sequence number                 |
 * |                   maximum transmission unit                   |
 * |                   maximum flow window size                    |
 * |                        handshake type                         |
 * |                         SRT socket id                         |
 * |                          SYN cookie                           |
 * |                    peer address (128 bits)                    |
 * +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 * |        extension type         |   extension length, words     |  repeated
 * |                       extension content                       |
 */
import { ProtocolError } from '../../util/protocol-error.ts';
import { ControlType, HEADER_LENGTH } from './header.ts';
import { REJECTION_BASE } from './rejection.ts';
import { SEQUENCE_MASK } from './sequence.ts';
import { readU16, readU32, writeU16, writeU32 } from './words.ts';

/** The steps of a handshake; numbers from 1000 on are reasons of a refusal (`RejectionCode`). */
export const HandshakeType = {
  INDUCTION: 1,
  WAVE_A_HAND: 0,
  CONCLUSION: 0xff_ff_ff_ff,
  AGREEMENT: 0xff_ff_ff_fe,
} as const;

/** The version of the handshake, not of SRT. */
export const HANDSHAKE_V4 = 4;
/** Version of a conclusion with extensions; an induction still has 4. */
export const HANDSHAKE_V5 = 5;
/** Extension field of an induction answer: the listener speaks SRT. */
export const SRT_MAGIC = 0x4a_17;
/** Extension field of an induction request: datagrams. */
export const UDT_DATAGRAM = 2;

/** Bits of the extension field of a conclusion. */
export const ExtensionBit = { HANDSHAKE: 1, KEY_MATERIAL: 2, CONFIG: 4 } as const;

/** Kinds of extensions behind the fixed part. */
export const ExtensionType = {
  HANDSHAKE_REQUEST: 1,
  HANDSHAKE_RESPONSE: 2,
  KEY_REQUEST: 3,
  KEY_RESPONSE: 4,
  STREAM_ID: 5,
  CONGESTION: 6,
  FILTER: 7,
  GROUP: 8,
} as const;

/** Capabilities of a side, §3.2.1.1.1. */
export const SrtFlag = {
  TSBPD_SENDER: 0x01,
  TSBPD_RECEIVER: 0x02,
  CRYPT: 0x04,
  TOO_LATE_DROP: 0x08,
  PERIODIC_NAK: 0x10,
  RETRANSMISSION: 0x20,
  STREAM_MODE: 0x40,
  PACKET_FILTER: 0x80,
} as const;

/** An extension on the wire; its content is a multiple of four bytes. */
export interface HandshakeExtension {
  readonly type: number;
  readonly content: Uint8Array;
}

/** A handshake packet without its header and the peer's address. */
export interface Handshake {
  readonly version: number;
  /** Key length in 8-byte units: 0, 2, 3 or 4. */
  readonly encryption: number;
  readonly extensionField: number;
  readonly initialSequence: number;
  readonly mtu: number;
  /** Packets in flight. */
  readonly flowWindow: number;
  /** One of `HandshakeType`, or a refusal from 1000 on. */
  readonly type: number;
  readonly socketId: number;
  readonly cookie: number;
  readonly extensions: readonly HandshakeExtension[];
}

/** Versions, capabilities and delays: the content of a handshake request or response. */
export interface SrtCapabilities {
  /** `0x010501` is 1.5.1. */
  readonly version: number;
  readonly flags: number;
  /** Time for which the sender of this message holds packets back, ms. */
  readonly receiverDelay: number;
  /** Time for which the other side should hold packets back, ms. */
  readonly senderDelay: number;
}

const FIXED_LENGTH = 48;
const EXTENSION_HEADER = 4;
const CAPABILITIES_LENGTH = 12;
const MAX_EXTENSIONS = 16;
/** Longest stream id of libsrt, bytes. */
const MAX_STREAM_ID_LENGTH = 512;

/** True for a control packet that is a handshake. */
export function isHandshake(datagram: Uint8Array): boolean {
  return datagram[0] === 0x80 && datagram[1] === ControlType.HANDSHAKE;
}

/** The refusal in a handshake, or null. */
export function rejectionOf(handshake: Handshake): number | null {
  const refused = handshake.type >= REJECTION_BASE && handshake.type < HandshakeType.AGREEMENT;
  return refused ? handshake.type - REJECTION_BASE : null;
}

/** Reads a handshake packet; contents of extensions are views. Throws `ProtocolError`. */
export function parseHandshake(datagram: Uint8Array): Handshake {
  if (datagram.length < HEADER_LENGTH + FIXED_LENGTH) {
    throw new ProtocolError('SRT_HANDSHAKE', `handshake of ${datagram.length} bytes, ${HEADER_LENGTH + FIXED_LENGTH} are the least`, 0);
  }
  const word = (index: number): number => readU32(datagram, HEADER_LENGTH + 4 * index);
  const version = word(0);
  const type = word(5);
  const extended = version === HANDSHAKE_V5 && type === HandshakeType.CONCLUSION;
  return {
    version,
    encryption: readU16(datagram, HEADER_LENGTH + 4),
    extensionField: readU16(datagram, HEADER_LENGTH + 6),
    initialSequence: word(2) & SEQUENCE_MASK,
    mtu: word(3),
    flowWindow: word(4),
    type,
    socketId: word(6),
    cookie: word(7),
    extensions: extended ? parseExtensions(datagram) : [],
  };
}

function parseExtensions(datagram: Uint8Array): HandshakeExtension[] {
  const extensions: HandshakeExtension[] = [];
  let at = HEADER_LENGTH + FIXED_LENGTH;
  while (at + EXTENSION_HEADER <= datagram.length) {
    const type = readU16(datagram, at);
    const start = at + EXTENSION_HEADER;
    const end = start + 4 * readU16(datagram, at + 2);
    if (end > datagram.length) {
      throw new ProtocolError('SRT_HANDSHAKE', `extension ${type} ends ${end - datagram.length} bytes behind the packet`, at);
    }
    if (extensions.length === MAX_EXTENSIONS) throw new ProtocolError('SRT_HANDSHAKE', `more than ${MAX_EXTENSIONS} extensions`, at);
    extensions.push({ type, content: datagram.subarray(start, end) });
    at = end;
  }
  return extensions;
}

/** A handshake packet for the socket `destination`. `peer` is the address of the receiver, which may learn it from the packet. */
export function serializeHandshake(
  handshake: Handshake,
  to: { readonly destination: number; readonly timestamp: number; readonly peer: string },
): Uint8Array {
  const body = handshake.extensions.reduce((sum, { content }) => sum + EXTENSION_HEADER + padded(content.length), 0);
  const packet = new Uint8Array(HEADER_LENGTH + FIXED_LENGTH + body);
  writeU32(packet, 0, 0x80_00_00_00);
  writeU32(packet, 8, to.timestamp);
  writeU32(packet, 12, to.destination);
  writeU32(packet, HEADER_LENGTH, handshake.version);
  writeU16(packet, HEADER_LENGTH + 4, handshake.encryption);
  writeU16(packet, HEADER_LENGTH + 6, handshake.extensionField);
  const { initialSequence, mtu, flowWindow, type, socketId, cookie } = handshake;
  for (const [index, value] of [initialSequence, mtu, flowWindow, type, socketId, cookie].entries()) {
    writeU32(packet, HEADER_LENGTH + 8 + 4 * index, value);
  }
  writeAddress(packet, HEADER_LENGTH + 32, to.peer);
  let at = HEADER_LENGTH + FIXED_LENGTH;
  for (const { type: extension, content } of handshake.extensions) {
    writeU16(packet, at, extension);
    writeU16(packet, at + 2, padded(content.length) / 4);
    packet.set(content, at + EXTENSION_HEADER);
    at += EXTENSION_HEADER + padded(content.length);
  }
  return packet;
}

function padded(length: number): number {
  return (length + 3) & ~3;
}

/** IPv4 only, in the byte order of libsrt; for other addresses the field stays zero, which peers accept. */
function writeAddress(packet: Uint8Array, at: number, address: string): void {
  const parts = address.split('.').map(Number);
  if (parts.length !== 4) return;
  for (const [index, part] of parts.entries()) packet[at + 3 - index] = part;
}

/** Content of a handshake request or response. Throws `ProtocolError` when it is too short. */
export function parseCapabilities(content: Uint8Array): SrtCapabilities {
  if (content.length < CAPABILITIES_LENGTH) {
    throw new ProtocolError('SRT_HANDSHAKE', `handshake extension of ${content.length} bytes, ${CAPABILITIES_LENGTH} are the least`, 0);
  }
  return {
    version: readU32(content, 0),
    flags: readU32(content, 4),
    receiverDelay: readU16(content, 8),
    senderDelay: readU16(content, 10),
  };
}

/** The content of a handshake request or response (§3.2.1.1). */
export function serializeCapabilities({ version, flags, receiverDelay, senderDelay }: SrtCapabilities): Uint8Array {
  const content = new Uint8Array(CAPABILITIES_LENGTH);
  writeU32(content, 0, version);
  writeU32(content, 4, flags);
  writeU16(content, 8, receiverDelay);
  writeU16(content, 10, senderDelay);
  return content;
}

/** Text of an extension with text (stream id, congestion control): the bytes of every word are reversed. Throws `ProtocolError`. */
export function parseTextExtension(content: Uint8Array): string {
  if (content.length > MAX_STREAM_ID_LENGTH) {
    throw new ProtocolError('SRT_HANDSHAKE', `text extension of ${content.length} bytes, ${MAX_STREAM_ID_LENGTH} are the most`, 0);
  }
  const bytes = swapWords(content);
  const end = bytes.indexOf(0);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(end < 0 ? bytes : bytes.subarray(0, end));
  } catch {
    throw new ProtocolError('SRT_HANDSHAKE', 'text extension is not UTF-8', 0);
  }
}

/** The content of a text extension such as the stream id (§3.2.1.3): words of four bytes, each reversed. */
export function serializeTextExtension(text: string): Uint8Array {
  const bytes = new TextEncoder().encode(text);
  const content = new Uint8Array(padded(bytes.length));
  content.set(bytes);
  return swapWords(content);
}

function swapWords(content: Uint8Array): Uint8Array {
  const swapped = new Uint8Array(content.length & ~3);
  for (let at = 0; at < swapped.length; at += 1) swapped[at] = content[(at & ~3) + 3 - (at & 3)] ?? 0;
  return swapped;
}
