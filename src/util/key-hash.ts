/**
 * Stored form of an access key: `sha256:SALT:DIGEST`, both in base64url. Keys are long and mostly random, so one round is enough; short
 * keys are refused when they are set.
 */
import { hash as digestOf, randomBytes } from 'node:crypto';

/** Shorter keys can be guessed. */
export const MIN_KEY_LENGTH = 16;
/** Longer texts are not hashed. */
export const MAX_KEY_LENGTH = 256;
const SALT_BYTES = 12;
const KEY_BYTES = 24;
/** Characters that need no escaping in URLs, stream ids and headers. */
const KEY = /^[\w.~-]+$/;
const HASH = /^sha256:([\w-]{1,64}):([\w-]{43})$/;

/** A key of 192 random bits. */
export function makeKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

/** Why a text is not a valid key, to be appended to its name; undefined if it is valid. */
export function keyFault(key: string): string | undefined {
  if (key.length < MIN_KEY_LENGTH || key.length > MAX_KEY_LENGTH)
    return `must have ${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} characters, but has ${key.length}`;
  return KEY.test(key) ? undefined : 'must be letters, digits and _ . ~ -';
}

/** A new salt. Keys that are compared together may share a salt: a key from a client is hashed once for each salt. */
export function makeSalt(): string {
  return randomBytes(SALT_BYTES).toString('base64url');
}

/** The stored form of `key`. */
export function hashKey(key: string, salt = makeSalt()): string {
  return `sha256:${salt}:${digest(salt, key)}`;
}

/** Whether a text has the form of a result of `hashKey`. */
export function isKeyHash(hash: string): boolean {
  return HASH.test(hash);
}

/** The salt of a hash; undefined for a text that is not a hash. */
export function saltOf(hash: string): string | undefined {
  return HASH.exec(hash)?.[1];
}

/**
 * The lookup key of a stored hash: a digest under a secret of this thread, so that timing a comparison reveals nothing. Undefined for a
 * text that is not a hash.
 */
export function keptMark(hash: string): string | undefined {
  const expected = HASH.exec(hash)?.[2];
  // Decoded and encoded again, because some writers leave bits in the last character.
  return expected === undefined ? undefined : mark(Buffer.from(expected, 'base64url').toString('base64url'));
}

/** The lookup key of the hash that `key` has with this salt. */
export function shownMark(salt: string, key: string): string {
  return mark(digest(salt, key));
}

const SECRET = randomBytes(32).toString('base64url');

function mark(digested: string): string {
  return digestOf('sha256', SECRET + digested, 'base64url');
}

function digest(salt: string, key: string): string {
  return digestOf('sha256', `${salt}:${key}`, 'base64url');
}
