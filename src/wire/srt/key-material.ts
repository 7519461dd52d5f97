/**
 * Key material messages, draft-sharabayko-srt-01 §3.2.2.
 *
 *  0                   1                   2                   3
 *  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 * +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
 * |0| V=1 | PT=2  |         sign = 0x2029         |   resv    |KK |
 * |                     key encryption index = 0                  |
 * |    cipher     |     auth      |  SE = 2       |     resv      |
 * |             resv              |    SLen/4     |    KLen/4     |
 * |                              salt                             |
 * |              wrapped keys: 8 bytes more than the keys         |
 */
import { ProtocolError } from '../../util/protocol-error.ts';
import { readU16, readU32, writeU16 } from './words.ts';

/** Bytes of an AES key. */
export type KeyLength = 16 | 24 | 32;

/** Supported contents of a key message: AES in counter mode. */
export interface KeyMaterial {
  readonly keyLength: KeyLength;
  /** The wrapped keys: even (1), odd (2), or both (3), the even one first. */
  readonly keys: number;
  /** 16 bytes. */
  readonly salt: Uint8Array;
  /** RFC 3394 wrapping of the keys. */
  readonly wrapped: Uint8Array;
}

/** Meanings of a one-word answer to key material. */
export const KeyState = { UNSECURED: 0, SECURING: 1, SECURED: 2, NO_SECRET: 3, BAD_SECRET: 4 } as const;

const SALT_LENGTH = 16;
const HEADER = 16;
const WRAP_OVERHEAD = 8;
const VERSION_AND_TYPE = 0x12;
const SIGN = 0x20_29;
const CIPHER_AES_CTR = 2;
const ENCAPSULATION_SRT = 2;

/** True for the lengths of AES keys, bytes. */
export function isKeyLength(length: number): length is KeyLength {
  return length === 16 || length === 24 || length === 32;
}

/** Reads a message; `salt` and `wrapped` are views. Throws `ProtocolError` naming the unsupported field. */
export function parseKeyMaterial(content: Uint8Array): KeyMaterial {
  const fail = (detail: string, at: number): ProtocolError => new ProtocolError('SRT_KEY_MATERIAL', detail, at);
  if (content.length < HEADER + SALT_LENGTH) throw fail(`key material of ${content.length} bytes`, 0);
  if (content[0] !== VERSION_AND_TYPE) throw fail(`version and type ${content[0]}, ${VERSION_AND_TYPE} is the only one known`, 0);
  if (readU16(content, 1) !== SIGN) throw fail('wrong sign', 1);
  const keys = (content[3] ?? 0) & 3;
  if (keys === 0) throw fail('key material without a key', 3);
  if (readU32(content, 4) !== 0) throw fail('a key encryption index other than 0', 4);
  if (content[8] !== CIPHER_AES_CTR) throw fail(`cipher ${content[8]}, only AES-CTR (${CIPHER_AES_CTR}) is supported`, 8);
  if (content[9] !== 0) throw fail(`authentication ${content[9]}, only none (0) is supported`, 9);
  if ((content[14] ?? 0) * 4 !== SALT_LENGTH) throw fail(`salt of ${(content[14] ?? 0) * 4} bytes, must be ${SALT_LENGTH}`, 14);
  const keyLength = (content[15] ?? 0) * 4;
  if (!isKeyLength(keyLength)) throw fail(`key of ${keyLength} bytes, must be 16, 24 or 32`, 15);
  const end = HEADER + SALT_LENGTH + WRAP_OVERHEAD + (keys === 3 ? 2 : 1) * keyLength;
  if (content.length < end) throw fail(`wrapped keys end ${end - content.length} bytes behind the message`, HEADER + SALT_LENGTH);
  return { keyLength, keys, salt: content.subarray(HEADER, HEADER + SALT_LENGTH), wrapped: content.subarray(HEADER + SALT_LENGTH, end) };
}

/** The content of a key extension or of a key message. */
export function serializeKeyMaterial({ keyLength, keys, salt, wrapped }: KeyMaterial): Uint8Array {
  const content = new Uint8Array(HEADER + SALT_LENGTH + wrapped.length);
  content[0] = VERSION_AND_TYPE;
  writeU16(content, 1, SIGN);
  content[3] = keys;
  content[8] = CIPHER_AES_CTR;
  content[10] = ENCAPSULATION_SRT;
  content[14] = SALT_LENGTH / 4;
  content[15] = keyLength / 4;
  content.set(salt, HEADER);
  content.set(wrapped, HEADER + SALT_LENGTH);
  return content;
}
