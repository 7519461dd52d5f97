import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { fitsKey } from '../../test/support/fits-key.ts';
import { hashKey, isKeyHash, keptMark, keyFault, makeKey, makeSalt, saltOf, shownMark } from './key-hash.ts';

test('a hash fits its key only, and every hash has a different salt', () => {
  const key = makeKey();
  expect(key).toMatch(/^[\w-]{32}$/);
  const hash = hashKey(key);
  expect(hash).not.toContain(key);
  expect(hash).not.toBe(hashKey(key));
  expect(isKeyHash(hash)).toBe(true);
  expect(fitsKey(hash, key)).toBe(true);
  for (const wrong of ['', key.slice(1), `${key}A`, key.toLowerCase(), makeKey()]) expect(fitsKey(hash, wrong)).toBe(false);
});

test('equals the SHA-256 of salt and key', () => {
  const digest = createHash('sha256').update('pepper:sixteen-letters!').digest('base64url');
  expect(fitsKey(`sha256:pepper:${digest}`, 'sixteen-letters!')).toBe(true);
});

test('keys of one salt are found by one keyed hash, which appears in no stored hash', () => {
  const [salt, key] = [makeSalt(), makeKey()];
  const hash = hashKey(key, salt);
  expect([saltOf(hash), keptMark(hash)]).toEqual([salt, shownMark(salt, key)]);
  expect(hash).not.toContain(keptMark(hash));
  const digest = createHash('sha256').update(`${salt}:${key}`).digest('base64url');
  expect([digest, createHash('sha256').update(digest).digest('base64')]).not.toContain(keptMark(hash));
  expect(keptMark(hash)).not.toBe(shownMark(makeSalt(), key));
});

test.each(['', 'sha256', 'sha256::', 'sha256:salt:', 'sha256:salt:QUJD', 'md5:salt:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'])(
  'the hash %j is invalid and fits no key',
  (hash) => {
    expect(isKeyHash(hash)).toBe(false);
    expect(fitsKey(hash, '')).toBe(false);
  },
);

test('keys that are too short, too long or need escapes are refused', () => {
  expect(keyFault('a-Key_of.16~char')).toBeUndefined();
  expect(keyFault(makeKey())).toBeUndefined();
  expect(keyFault('fifteen-letters')).toBe('must have 16 to 256 characters, but has 15');
  expect(keyFault('k'.repeat(257))).toBe('must have 16 to 256 characters, but has 257');
  for (const sign of [' ', '&', '=', '?', '#', '%', '+', ',', '/', 'é']) expect(keyFault(`${sign}aaaaaaaaaaaaaaaa`)).toContain('letters');
});
