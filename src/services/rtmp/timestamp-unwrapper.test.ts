import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TimestampUnwrapper } from './timestamp-unwrapper.ts';

test('follows any clock whose steps stay below 2^31 ms', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 0xffff_ffff }),
      fc.array(fc.integer({ min: -(2 ** 31) + 1, max: 2 ** 31 - 1 })),
      (first, steps) => {
        const unwrapper = new TimestampUnwrapper();
        let real = first;
        expect(unwrapper.unwrap(first)).toBe(first);
        for (const step of steps) {
          real += step;
          expect(unwrapper.unwrap(((real % 2 ** 32) + 2 ** 32) % 2 ** 32)).toBe(real);
        }
      },
    ),
  );
});
