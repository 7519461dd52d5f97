/** Control packets except the handshake, draft-sharabayko-srt-01 §3.2.2 to §3.2.9. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { ControlType, HEADER_LENGTH, MESSAGE_NUMBER_MASK } from './header.ts';
import { type LossRange, parseLossList, serializeLossList } from './loss-list.ts';
import { SEQUENCE_MASK } from './sequence.ts';
import { readU16, readU32, writeU16, writeU32 } from './words.ts';

/** Link figures of a full acknowledgement. */
export interface LinkReport {
  /** µs. */
  readonly rtt: number;
  /** µs. */
  readonly rttVariance: number;
  /** Packets that still fit into the receiver's buffer. */
  readonly availableBuffer: number;
  /** Packets per second; 0 in a small acknowledgement. */
  readonly receiveRate: number;
  /** Packets per second; 0 in a small acknowledgement. */
  readonly linkCapacity: number;
  /** Bytes per second; 0 in a small acknowledgement. */
  readonly receiveByteRate: number;
}

/** The parsed packet; unknown types are `other`, never a fault. */
export type ControlPacket =
  | { readonly type: 'keep-alive' }
  | { readonly type: 'shutdown' }
  /** Everything before `sequence` has arrived. `number` is 0 and `report` null in a light acknowledgement, which is not answered. */
  | { readonly type: 'ack'; readonly number: number; readonly sequence: number; readonly report: LinkReport | null }
  | { readonly type: 'ack-ack'; readonly number: number }
  | { readonly type: 'nak'; readonly ranges: readonly LossRange[] }
  | { readonly type: 'drop-request'; readonly message: number; readonly range: LossRange }
  | { readonly type: 'peer-error'; readonly code: number }
  /** A message of the extension `subtype`, 3 and 4 for key material. */
  | { readonly type: 'user-defined'; readonly subtype: number; readonly content: Uint8Array }
  /** A packet without use here. */
  | { readonly type: 'other'; readonly code: number };

const LIGHT_ACK_LENGTH = 4;
const SMALL_ACK_LENGTH = 16;
const FULL_ACK_LENGTH = 28;
const RANGE_LENGTH = 8;
/** Payload of an Ethernet frame (1500 bytes) without the IP and UDP headers: the maximum that we announce. */
const MAX_LENGTH = 1472;
/** libsrt never sends a bare header; some receivers expect that. */
const EMPTY_BODY_LENGTH = 4;

/** Reads a control packet other than a handshake. `content` is a view. Throws `ProtocolError`. */
export function parseControlPacket(datagram: Uint8Array): ControlPacket {
  if (datagram.length < HEADER_LENGTH || datagram.length > MAX_LENGTH)
    throw new ProtocolError('SRT_HEADER', `control packet of ${datagram.length} bytes`, 0);
  const code = readU16(datagram, 0) & 0x7f_ff;
  switch (code) {
    case ControlType.KEEP_ALIVE:
      return { type: 'keep-alive' };
    case ControlType.SHUTDOWN:
      return { type: 'shutdown' };
    case ControlType.ACK:
      return parseAck(datagram);
    case ControlType.ACK_ACK:
      return { type: 'ack-ack', number: readU32(datagram, 4) };
    case ControlType.NAK:
      return { type: 'nak', ranges: parseLossList(datagram, HEADER_LENGTH) };
    case ControlType.DROP_REQUEST:
      return parseDropRequest(datagram);
    case ControlType.PEER_ERROR:
      return { type: 'peer-error', code: readU32(datagram, 4) };
    case ControlType.USER_DEFINED:
      return { type: 'user-defined', subtype: readU16(datagram, 2), content: datagram.subarray(HEADER_LENGTH) };
    default:
      return { type: 'other', code };
  }
}

function parseAck(datagram: Uint8Array): ControlPacket {
  const length = datagram.length - HEADER_LENGTH;
  if (length < LIGHT_ACK_LENGTH) throw new ProtocolError('SRT_ACK', `acknowledgement of ${length} bytes`, HEADER_LENGTH);
  const number = readU32(datagram, 4);
  const sequence = readU32(datagram, HEADER_LENGTH) & SEQUENCE_MASK;
  if (length < SMALL_ACK_LENGTH) return { type: 'ack', number: 0, sequence, report: null };
  const full = length >= FULL_ACK_LENGTH;
  const word = (index: number): number => readU32(datagram, HEADER_LENGTH + 4 * index);
  const report: LinkReport = {
    rtt: word(1),
    rttVariance: word(2),
    availableBuffer: word(3),
    receiveRate: full ? word(4) : 0,
    linkCapacity: full ? word(5) : 0,
    receiveByteRate: full ? word(6) : 0,
  };
  return { type: 'ack', number, sequence, report };
}

function parseDropRequest(datagram: Uint8Array): ControlPacket {
  if (datagram.length < HEADER_LENGTH + RANGE_LENGTH) {
    throw new ProtocolError('SRT_DROP_REQUEST', `drop request of ${datagram.length - HEADER_LENGTH} bytes`, HEADER_LENGTH);
  }
  const first = readU32(datagram, HEADER_LENGTH) & SEQUENCE_MASK;
  const last = readU32(datagram, HEADER_LENGTH + 4) & SEQUENCE_MASK;
  return { type: 'drop-request', message: readU32(datagram, 4) & MESSAGE_NUMBER_MASK, range: { first, last } };
}

/** Destination and departure of a packet. */
export interface ControlAddress {
  /** µs since the start of the sender's connection; the low 32 bits are sent. */
  readonly timestamp: number;
  /** Socket id of the receiver. */
  readonly destination: number;
}

function control(type: number, bodyLength: number, address: ControlAddress, info = 0): Uint8Array {
  const packet = new Uint8Array(HEADER_LENGTH + bodyLength);
  writeU16(packet, 0, 0x80_00 | type);
  writeU32(packet, 4, info);
  writeU32(packet, 8, address.timestamp);
  writeU32(packet, 12, address.destination);
  return packet;
}

/** A keep-alive (§3.2.3). */
export function serializeKeepAlive(address: ControlAddress): Uint8Array {
  return control(ControlType.KEEP_ALIVE, EMPTY_BODY_LENGTH, address);
}

/** A shutdown (§3.2.7): the connection is over. */
export function serializeShutdown(address: ControlAddress): Uint8Array {
  return control(ControlType.SHUTDOWN, EMPTY_BODY_LENGTH, address);
}

/** The answer to the full acknowledgement of this number (§3.2.8). */
export function serializeAckAck(number: number, address: ControlAddress): Uint8Array {
  return control(ControlType.ACK_ACK, EMPTY_BODY_LENGTH, address, number);
}

/** An acknowledgement between the full ones; not answered. */
export function serializeLightAck(sequence: number, address: ControlAddress): Uint8Array {
  const packet = control(ControlType.ACK, LIGHT_ACK_LENGTH, address);
  writeU32(packet, HEADER_LENGTH, sequence);
  return packet;
}

/** A full acknowledgement (§3.2.4): everything before `sequence` has arrived. */
export function serializeAck(number: number, sequence: number, report: LinkReport, address: ControlAddress): Uint8Array {
  const packet = control(ControlType.ACK, FULL_ACK_LENGTH, address, number);
  const { rtt, rttVariance, availableBuffer, receiveRate, linkCapacity, receiveByteRate } = report;
  const words = [sequence, rtt, rttVariance, availableBuffer, receiveRate, linkCapacity, receiveByteRate];
  for (const [index, value] of words.entries()) writeU32(packet, HEADER_LENGTH + 4 * index, value);
  return packet;
}

/** A NAK with at most `maxBytes` of loss list. */
export function serializeNak(ranges: readonly LossRange[], maxBytes: number, address: ControlAddress): Uint8Array {
  const list = serializeLossList(ranges, maxBytes);
  const packet = control(ControlType.NAK, list.length, address);
  packet.set(list, HEADER_LENGTH);
  return packet;
}

/** Announces packets that will not be sent any more. */
export function serializeDropRequest(message: number, range: LossRange, address: ControlAddress): Uint8Array {
  const packet = control(ControlType.DROP_REQUEST, RANGE_LENGTH, address, message);
  writeU32(packet, HEADER_LENGTH, range.first);
  writeU32(packet, HEADER_LENGTH + 4, range.last);
  return packet;
}

/** A message of the extension `subtype`, for an established connection: key material (§3.2.2). */
export function serializeUserDefined(subtype: number, content: Uint8Array, address: ControlAddress): Uint8Array {
  const packet = control(ControlType.USER_DEFINED, content.length, address);
  writeU16(packet, 2, subtype);
  packet.set(content, HEADER_LENGTH);
  return packet;
}
