import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { KeyedHash } from './keyed-hash.ts';

const ALGORITHMS = ['sha1', 'sha256'] as const;

/** RFC 2202 and 4231: key, text, digests. */
const VECTORS: readonly (readonly [key: Buffer, text: string, sha1: string, sha256: string])[] = [
  [
    Buffer.alloc(20, 0x0b),
    'Hi There',
    'b617318655057264e28bc0b6fb378c8ef146be00',
    'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  ],
  [
    Buffer.from('Jefe'),
    'what do ya want for nothing?',
    'effcdf6ae5eb2fa2d27416d5f184df9c259a7c79',
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  ],
];

describe.each(ALGORITHMS)('%s', (algorithm) => {
  test('is that of the RFC', () => {
    for (const [key, text, sha1, sha256] of VECTORS) {
      const signature = new KeyedHash(algorithm, key).sign(text);
      expect(Buffer.from(signature, 'base64url').toString('hex')).toBe({ sha1, sha256 }[algorithm]);
    }
  });

  test('equals createHmac for arbitrary keys and texts in sequence', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.string({ unit: fc.integer({ min: 0, max: 0xff_ff }).map((code) => String.fromCharCode(code)), maxLength: 200 }),
      fc.integer({ min: 1300, max: 1400 }).map((length) => '€'.repeat(length)),
    );
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.uint8Array({ maxLength: 200 })), fc.array(text, { maxLength: 4 }), (key, texts) => {
        const made = new KeyedHash(algorithm, key);
        for (const one of texts) {
          const signature = createHmac(algorithm, key).update(one).digest('base64url');
          expect(made.sign(one)).toBe(signature);
          expect(made.isSigned(one, signature)).toBe(true);
          expect(made.isSigned(`${one}x`, signature)).toBe(false);
          expect(made.number(one)).toBe(createHmac(algorithm, key).update(one).digest().readUInt32BE(0));
        }
      }),
    );
  });

  test.each([undefined, 12])('knows every wrong signature of %s bytes', (size) => {
    const made = new KeyedHash(algorithm, 'key', size);
    const signature = made.sign('text');
    const bytes = Buffer.from(signature, 'base64url');
    const whole = createHmac(algorithm, 'key').update('text').digest();
    expect(bytes).toEqual(whole.subarray(0, size));
    if (size !== undefined) expect(made.isSigned('text', whole.toString('base64url'))).toBe(false);
    for (let at = 0; at < bytes.length * 8; at += 1) {
      const wrong = Buffer.from(bytes);
      wrong[at >> 3] = (wrong[at >> 3] ?? 0) ^ (1 << (at & 7));
      expect(made.isSigned('text', wrong.toString('base64url'))).toBe(false);
    }
    for (let length = 0; length < signature.length; length += 1) expect(made.isSigned('text', signature.slice(0, length))).toBe(false);
    for (const more of ['A', 'AA', 'AAA', 'AAAA', 'A'.repeat(100)]) expect(made.isSigned('text', `${signature}${more}`)).toBe(false);
    expect(made.isSigned('text', Buffer.concat([bytes, Buffer.alloc(1)]).toString('base64url'))).toBe(false);
    // The content of an earlier test must not matter.
    expect(made.isSigned('text', '')).toBe(false);
    expect(made.isSigned('text', signature)).toBe(true);
  });
});
