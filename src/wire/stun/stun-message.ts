/**
 * STUN messages as ICE and TURN use them (RFC 8489, RFC 8445 section 7, RFC 8656 section 18).
 *
 *  0                   1                   2                   3
 * |0 0|    type (14)      |         length (16)          |
 * |                 magic cookie (32)                    |
 * |                 transaction id (96)                  |
 * | attributes: type (16), length (16), value, padding … |
 */
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { crc32 } from 'node:zlib';
import { addressBytes } from '../../util/address-bytes.ts';
import { ProtocolError } from '../../util/protocol-error.ts';

/** Methods and classes as one number (RFC 8489 section 5). */
export const StunType = {
  BINDING_REQUEST: 0x0001,
  BINDING_INDICATION: 0x0011,
  BINDING_SUCCESS: 0x0101,
  BINDING_ERROR: 0x0111,
  ALLOCATE_REQUEST: 0x0003,
  REFRESH_REQUEST: 0x0004,
  CREATE_PERMISSION_REQUEST: 0x0008,
  CHANNEL_BIND_REQUEST: 0x0009,
  SEND_INDICATION: 0x0016,
  DATA_INDICATION: 0x0017,
} as const;

/** Bits that make a response's type of a request's type (RFC 8489 section 5). */
const SUCCESS_CLASS = 0x0100;
const ERROR_CLASS = 0x0110;

/** Attribute types (RFC 8489 section 18.3, RFC 8445 section 16.1, RFC 8656 section 18). */
export const StunAttribute = {
  USERNAME: 0x0006,
  MESSAGE_INTEGRITY: 0x0008,
  ERROR_CODE: 0x0009,
  CHANNEL_NUMBER: 0x000c,
  LIFETIME: 0x000d,
  XOR_PEER_ADDRESS: 0x0012,
  DATA: 0x0013,
  REALM: 0x0014,
  NONCE: 0x0015,
  XOR_RELAYED_ADDRESS: 0x0016,
  REQUESTED_ADDRESS_FAMILY: 0x0017,
  REQUESTED_TRANSPORT: 0x0019,
  XOR_MAPPED_ADDRESS: 0x0020,
  PRIORITY: 0x0024,
  USE_CANDIDATE: 0x0025,
  FINGERPRINT: 0x8028,
  ICE_CONTROLLED: 0x8029,
  ICE_CONTROLLING: 0x802a,
} as const;

const HEADER = 20;
const COOKIE = 0x2112_a442;
const INTEGRITY_LENGTH = 20;
const FINGERPRINT_XOR = 0x5354_554e;
const MAX_ATTRIBUTES = 32;

/** A parsed message; `isStunAuthentic` checks its integrity. Values are views into `bytes`. */
export interface StunMessage {
  readonly type: number;
  /** 12 bytes. */
  readonly transaction: Buffer;
  /** Attributes before MESSAGE-INTEGRITY, the first of each type. */
  readonly attributes: ReadonlyMap<number, Buffer>;
  /** Every XOR-PEER-ADDRESS before MESSAGE-INTEGRITY: the one attribute that may occur several times (RFC 8656 section 9.1). */
  readonly peers: readonly Buffer[];
  /** Where MESSAGE-INTEGRITY begins; -1 without one. */
  readonly integrityAt: number;
  readonly bytes: Buffer;
}

/** Parses a datagram, and checks its fingerprint if it has one. Throws ProtocolError. */
export function parseStun(bytes: Buffer): StunMessage {
  if (bytes.length < HEADER) throw new ProtocolError('STUN_SHORT', `a STUN message has at least ${HEADER} bytes, this has ${bytes.length}`);
  const type = bytes.readUInt16BE(0);
  if (type >= 0x4000) throw new ProtocolError('STUN_TYPE', 'the first two bits are not zero', 0);
  if (bytes.readUInt32BE(4) !== COOKIE) throw new ProtocolError('STUN_COOKIE', 'the magic cookie is missing', 4);
  const length = bytes.readUInt16BE(2);
  if (length % 4 !== 0 || length + HEADER !== bytes.length) {
    throw new ProtocolError('STUN_LENGTH', `the length says ${length}, the datagram has ${bytes.length - HEADER}`, 2);
  }
  const attributes = new Map<number, Buffer>();
  const peers: Buffer[] = [];
  let integrityAt = -1;
  for (let at = HEADER; at < bytes.length; ) {
    if (at + 4 > bytes.length) throw new ProtocolError('STUN_ATTRIBUTE', 'an attribute head is cut off', at);
    const name = bytes.readUInt16BE(at);
    const size = bytes.readUInt16BE(at + 2);
    const next = at + 4 + size + ((4 - (size % 4)) % 4);
    if (next > bytes.length) throw new ProtocolError('STUN_ATTRIBUTE', `attribute 0x${name.toString(16)} is longer than the message`, at);
    if (name === StunAttribute.FINGERPRINT) checkFingerprint(bytes, at, size);
    else if (name === StunAttribute.MESSAGE_INTEGRITY && integrityAt < 0) {
      if (size !== INTEGRITY_LENGTH) throw new ProtocolError('STUN_INTEGRITY', 'MESSAGE-INTEGRITY has not 20 bytes', at);
      integrityAt = at;
    } else if (integrityAt < 0) {
      // Attributes after MESSAGE-INTEGRITY are not protected by it and are ignored (RFC 8489 section 14.5).
      const value = bytes.subarray(at + 4, at + 4 + size);
      if (name === StunAttribute.XOR_PEER_ADDRESS) peers.push(value);
      if (!attributes.has(name)) attributes.set(name, value);
      if (Math.max(attributes.size, peers.length) > MAX_ATTRIBUTES)
        throw new ProtocolError('STUN_ATTRIBUTE', `more than ${MAX_ATTRIBUTES} attributes`, at);
    }
    at = next;
  }
  return { type, transaction: bytes.subarray(8, HEADER), attributes, peers, integrityAt, bytes };
}

/** The type field of bytes that may be a message; 0 if they are too short. */
export function stunTypeOf(bytes: Buffer): number {
  return bytes.length < 2 ? 0 : bytes.readUInt16BE(0);
}

/** The type of the success response to a request. */
export function successOf(request: number): number {
  return request | SUCCESS_CLASS;
}

/** The type of the error response to a request. */
export function errorOf(request: number): number {
  return request | ERROR_CLASS;
}

/** True if the sender of the message knows `password`, or the long-term key. */
export function isStunAuthentic(message: StunMessage, password: StunKey): boolean {
  const { integrityAt, bytes } = message;
  if (integrityAt < 0) return false;
  const expected = integrityOf(bytes.subarray(0, integrityAt), password);
  return timingSafeEqual(expected, bytes.subarray(integrityAt + 4, integrityAt + 4 + INTEGRITY_LENGTH));
}

/** A short-term password, or the key of a long-term one (RFC 8489 section 9.2.2). A `KeyObject` costs a fifth of raw bytes each time. */
export type StunKey = string | KeyObject;

/** Contents of a message besides integrity and fingerprint, which are added. */
export interface StunDraft {
  readonly type: number;
  readonly transaction: Uint8Array;
  readonly attributes: readonly (readonly [type: number, value: Uint8Array])[];
  /** Key of MESSAGE-INTEGRITY; null leaves it out. */
  readonly password: StunKey | null;
}

/** The message with MESSAGE-INTEGRITY, if there is a password, and FINGERPRINT at the end. */
export function serializeStun({ type, transaction, attributes, password }: StunDraft): Buffer {
  const parts: Buffer[] = [];
  const head = Buffer.alloc(HEADER);
  head.writeUInt16BE(type, 0);
  head.writeUInt32BE(COOKIE, 4);
  head.set(transaction, 8);
  parts.push(head);
  for (const [name, value] of attributes) parts.push(attribute(name, value));
  if (password !== null) parts.push(attribute(StunAttribute.MESSAGE_INTEGRITY, integrityOf(Buffer.concat(parts), password)));
  const body = Buffer.concat(parts);
  // The length includes the hashed attributes and the hash itself.
  body.writeUInt16BE(body.length - HEADER + 8, 2);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE((crc32(body) ^ FINGERPRINT_XOR) >>> 0);
  return Buffer.concat([body, attribute(StunAttribute.FINGERPRINT, sum)]);
}

/** Value of XOR-MAPPED-ADDRESS (RFC 8489 section 14.2). Throws TypeError if `host` is no IP address. */
export function xorMappedAddress(host: string, port: number, transaction: Uint8Array): Buffer {
  const address = addressBytes(host);
  const value = Buffer.alloc(4 + address.length);
  value[1] = isIPv6(host) ? 2 : 1;
  value.writeUInt16BE(port ^ (COOKIE >>> 16), 2);
  const mask = Buffer.alloc(16);
  mask.writeUInt32BE(COOKIE);
  mask.set(transaction.subarray(0, 12), 4);
  address.forEach((byte, n) => {
    value[4 + n] = byte ^ (mask[n] ?? 0);
  });
  return value;
}

/** Reads a value that `xorMappedAddress` wrote. Throws ProtocolError. */
export function readXorMappedAddress(value: Buffer, transaction: Uint8Array): { readonly host: string; readonly port: number } {
  const family = value[1] ?? 0;
  const length = family === 2 ? 16 : 4;
  if ((family !== 1 && family !== 2) || value.length !== 4 + length) {
    throw new ProtocolError('STUN_ADDRESS', `an address of family ${family} in ${value.length} bytes`);
  }
  const mask = Buffer.alloc(16);
  mask.writeUInt32BE(COOKIE);
  mask.set(transaction.subarray(0, 12), 4);
  const bytes = value.subarray(4).map((byte, n) => byte ^ (mask[n] ?? 0));
  const groups = Array.from({ length: 8 }, (_unused, n) => (((bytes[2 * n] ?? 0) << 8) | (bytes[2 * n + 1] ?? 0)).toString(16));
  return { host: family === 1 ? bytes.join('.') : groups.join(':'), port: value.readUInt16BE(2) ^ (COOKIE >>> 16) };
}

/** Value of ERROR-CODE (RFC 8489 section 14.8). */
export function errorCode(code: number, reason: string): Buffer {
  return Buffer.concat([Buffer.of(0, 0, Math.floor(code / 100), code % 100), Buffer.from(reason)]);
}

function attribute(name: number, value: Uint8Array): Buffer {
  const bytes = Buffer.alloc(4 + value.length + ((4 - (value.length % 4)) % 4));
  bytes.writeUInt16BE(name, 0);
  bytes.writeUInt16BE(value.length, 2);
  bytes.set(value, 4);
  return bytes;
}

/** HMAC over everything before the attribute, with a length that reaches to its end. */
function integrityOf(before: Buffer, password: StunKey): Buffer {
  const head = Buffer.from(before.subarray(0, HEADER));
  head.writeUInt16BE(before.length - HEADER + 4 + INTEGRITY_LENGTH, 2);
  return createHmac('sha1', password).update(head).update(before.subarray(HEADER)).digest();
}

function checkFingerprint(bytes: Buffer, at: number, size: number): void {
  if (size !== 4 || at + 8 !== bytes.length) throw new ProtocolError('STUN_FINGERPRINT', 'FINGERPRINT is not the last attribute', at);
  if (bytes.readUInt32BE(at + 4) !== (crc32(bytes.subarray(0, at)) ^ FINGERPRINT_XOR) >>> 0) {
    throw new ProtocolError('STUN_FINGERPRINT', 'FINGERPRINT does not fit the message', at);
  }
}
