/**
 * What is kept of a key that somebody has to show: `sha256:SALT:DIGEST`, both in base64url. Keys are long and mostly made at random, so one
 * round is enough; short ones are refused where they are given.
 */
import { hash as digestOf, randomBytes, timingSafeEqual } from 'node:crypto';

/** Shorter keys can be guessed. */
export const MIN_KEY_LENGTH = 16;
/** Longer ones are not even looked at. */
export const MAX_KEY_LENGTH = 256;
const SALT_BYTES = 12;
const KEY_BYTES = 24;
const DIGEST_BYTES = 32;
/** Characters that stand for themselves in URLs, stream ids and headers. */
const KEY = /^[\w.~-]+$/;
const HASH = /^sha256:([\w-]{1,64}):([\w-]{43})$/;

/** A key of 192 random bits. */
export function makeKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

/** Why a text is no key, to be put behind its name; undefined for one that is. */
export function keyFault(key: string): string | undefined {
  if (key.length < MIN_KEY_LENGTH || key.length > MAX_KEY_LENGTH)
    return `must have ${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} characters, but has ${key.length}`;
  return KEY.test(key) ? undefined : 'must be letters, digits and _ . ~ -';
}

/** What to keep of `key`. */
export function hashKey(key: string): string {
  const salt = randomBytes(SALT_BYTES).toString('base64url');
  return `sha256:${salt}:${digest(salt, key).toString('base64url')}`;
}

/** Whether `hashKey` could have made it. */
export function isKeyHash(hash: string): boolean {
  return HASH.test(hash);
}

/** Compares keys with one hash; takes as long for a wrong key as for the right one. A hash that cannot be read fits no key. */
export function keyTest(hash: string): (key: string) => boolean {
  const [, salt = '', expected = ''] = HASH.exec(hash) ?? [];
  const wanted = Buffer.from(expected, 'base64url');
  if (wanted.length !== DIGEST_BYTES) return () => false;
  return (key) => timingSafeEqual(digest(salt, key), wanted);
}

function digest(salt: string, key: string): Buffer {
  return digestOf('sha256', `${salt}:${key}`, 'buffer');
}
