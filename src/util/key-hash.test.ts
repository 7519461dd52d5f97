import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { hashKey, isKeyHash, keyFault, keyTest, makeKey } from './key-hash.ts';

test('a hash fits its key only, and every hash has a salt of its own', () => {
  const key = makeKey();
  expect(key).toMatch(/^[\w-]{32}$/);
  const hash = hashKey(key);
  expect(hash).not.toContain(key);
  expect(hash).not.toBe(hashKey(key));
  expect(isKeyHash(hash)).toBe(true);
  expect(keyTest(hash)(key)).toBe(true);
  for (const wrong of ['', key.slice(1), `${key}A`, key.toLowerCase(), makeKey()]) expect(keyTest(hash)(wrong)).toBe(false);
});

test('is what other tools make of salt and key', () => {
  const digest = createHash('sha256').update('pepper:sixteen-letters!').digest('base64url');
  expect(keyTest(`sha256:pepper:${digest}`)('sixteen-letters!')).toBe(true);
});

test.each(['', 'sha256', 'sha256::', 'sha256:salt:', 'sha256:salt:QUJD', 'md5:salt:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'])(
  'the hash %j is none and fits nothing',
  (hash) => {
    expect(isKeyHash(hash)).toBe(false);
    expect(keyTest(hash)('')).toBe(false);
  },
);

test('keys that can be guessed or need escapes are told', () => {
  expect(keyFault('a-Key_of.16~char')).toBeUndefined();
  expect(keyFault(makeKey())).toBeUndefined();
  expect(keyFault('fifteen-letters')).toBe('must have 16 to 256 characters, but has 15');
  expect(keyFault('k'.repeat(257))).toBe('must have 16 to 256 characters, but has 257');
  for (const sign of [' ', '&', '=', '?', '#', '%', '+', ',', '/', 'é']) expect(keyFault(`${sign}aaaaaaaaaaaaaaaa`)).toContain('letters');
});
