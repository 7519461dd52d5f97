import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { shiftSum, timesModulo } from './crc-patch.ts';

it('computes the checksum of a text with any tail from that with zeros as the tail', () => {
  const ascii = fc.string({ unit: 'binary-ascii', maxLength: 100 });
  fc.assert(
    fc.property(
      fc.array(ascii, { minLength: 2, maxLength: 40 }),
      fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 64 }),
      (pieces, tail) => {
        const zeros = '\0'.repeat(tail.length);
        const patched = crc32(pieces.join(zeros)) ^ timesModulo(shiftSum(pieces, tail.length), crc32(tail) ^ crc32(zeros));
        expect(patched >>> 0).toBe(crc32(pieces.join(tail)));
      },
    ),
  );
});

it('multiplies factors with either sign', () => {
  expect(timesModulo(0x80000000, 0x12345678)).toBe(0x12345678);
  expect(timesModulo(0x80000000 | 0, 0x12345678)).toBe(0x12345678);
  expect(timesModulo(0, 0x12345678)).toBe(0);
});
