/**
 * The header every SRT packet starts with, draft-sharabayko-srt-01 §3.
 *
 *  0                   1                   2                   3
 *  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 * +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 * |0|                  packet sequence number                     |  data
 * |P P|O|K K|R|                message number                     |
 * +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 * |1|        control type         |            subtype            |  control
 * |                   type-specific information                   |
 * +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 * |                  timestamp, µs since the start                |  both
 * |                     destination socket id                     |
 */
import { readU32, writeU32 } from './words.ts';

/** Length of the header of data and control packets, bytes. */
export const HEADER_LENGTH = 16;
/** The largest payload in an IP packet of 1500 bytes: without the IPv4, UDP and SRT headers. */
export const MAX_PAYLOAD_LENGTH = 1456;
/** Payload of seven transport stream packets, as every SRT program sends it. */
export const LIVE_PAYLOAD_LENGTH = 1316;

/** Types of control packets (§3.2). */
export const ControlType = {
  HANDSHAKE: 0,
  KEEP_ALIVE: 1,
  ACK: 2,
  NAK: 3,
  CONGESTION_WARNING: 4,
  SHUTDOWN: 5,
  ACK_ACK: 6,
  DROP_REQUEST: 7,
  PEER_ERROR: 8,
  /** The subtype is an extension type of the handshake, mostly key material. */
  USER_DEFINED: 0x7f_ff,
} as const;

/** The key of an encrypted payload (KK). */
export const KeyFlag = { NONE: 0, EVEN: 1, ODD: 2 } as const;
/** Any value of `KeyFlag`. */
export type KeyFlag = (typeof KeyFlag)[keyof typeof KeyFlag];

const CONTROL_BIT = 0x80;
/** First and last packet of a message: live mode has one packet in each. */
const SOLO = 0xc0_00_00_00;
const IN_ORDER = 0x20_00_00_00;
const KEY_SHIFT = 27;
const RETRANSMITTED_BIT = 0x04;
/** Message numbers have 26 bits and wrap; 0 is none. */
export const MESSAGE_NUMBER_MASK = 0x03_ff_ff_ff;

/** True for control packets; all others are data. The datagram must hold a header. */
export function isControlPacket(datagram: Uint8Array): boolean {
  return ((datagram[0] ?? 0) & CONTROL_BIT) !== 0;
}

/** The destination socket id; 0 in the first handshake of a caller. */
export function destinationOf(datagram: Uint8Array): number {
  return readU32(datagram, 12);
}

/** µs since the start of the sender's connection, 32 bits that wrap every 71 minutes. */
export function timestampOf(datagram: Uint8Array): number {
  return readU32(datagram, 8);
}

/** The sequence number of a data packet. */
export function dataSequenceOf(datagram: Uint8Array): number {
  return readU32(datagram, 0);
}

/** The key flag of a data packet; 3 is not a valid value. */
export function keyFlagOf(datagram: Uint8Array): number {
  return ((datagram[4] ?? 0) >> 3) & 3;
}

/** Whether a data packet is a retransmission. */
export function isRetransmitted(datagram: Uint8Array): boolean {
  return ((datagram[4] ?? 0) & RETRANSMITTED_BIT) !== 0;
}

/** Fields of a data packet of live mode. */
export interface DataHeader {
  readonly sequence: number;
  readonly message: number;
  readonly keyFlag: KeyFlag;
  /** µs since the start of the sender's connection; the low 32 bits are sent. */
  readonly timestamp: number;
  readonly destination: number;
}

/** Writes at `at` the header of a packet that is a whole message and is sent for the first time. */
export function writeDataHeader(target: Uint8Array, at: number, header: DataHeader): void {
  writeU32(target, at, header.sequence);
  writeU32(target, at + 4, SOLO | IN_ORDER | (header.keyFlag << KEY_SHIFT) | (header.message & MESSAGE_NUMBER_MASK));
  writeU32(target, at + 8, header.timestamp);
  writeU32(target, at + 12, header.destination);
}

/** Marks a written data header as that of a retransmission. */
export function markRetransmitted(target: Uint8Array, at: number): void {
  target[at + 4] = (target[at + 4] ?? 0) | RETRANSMITTED_BIT;
}
