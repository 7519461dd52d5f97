/** Passphrase → key encrypting key → wrapped stream keys, draft-sharabayko-srt-01 §6.1.4 and §6.1.5. */
import { createCipheriv, createDecipheriv, pbkdf2Sync } from 'node:crypto';
import type { KeyLength } from './key-material.ts';

const ITERATIONS = 2048;
/** The derivation uses only the last bytes of the salt. */
const DERIVATION_SALT_LENGTH = 8;
/** Integrity check value of RFC 3394. */
const INITIAL_VALUE = Buffer.alloc(8, 0xa6);

/** The limits of a passphrase, bytes of UTF-8. */
export const PASSPHRASE_LENGTHS = { min: 10, max: 79 } as const;

/** PBKDF2 with HMAC-SHA1; takes about a millisecond. */
export function deriveWrappingKey(passphrase: string, salt: Uint8Array, keyLength: KeyLength): Uint8Array {
  return pbkdf2Sync(passphrase, salt.subarray(salt.length - DERIVATION_SALT_LENGTH), ITERATIONS, keyLength, 'sha1');
}

/** RFC 3394: 8 bytes longer than `keys`. */
export function wrapKeys(wrappingKey: Uint8Array, keys: Uint8Array): Uint8Array {
  const cipher = createCipheriv(`id-aes${wrappingKey.length * 8}-wrap`, wrappingKey, INITIAL_VALUE);
  return Buffer.concat([cipher.update(keys), cipher.final()]);
}

/** Null if the wrapping key is wrong. */
export function unwrapKeys(wrappingKey: Uint8Array, wrapped: Uint8Array): Uint8Array | null {
  const decipher = createDecipheriv(`id-aes${wrappingKey.length * 8}-wrap`, wrappingKey, INITIAL_VALUE);
  try {
    return Buffer.concat([decipher.update(wrapped), decipher.final()]);
  } catch {
    return null;
  }
}
