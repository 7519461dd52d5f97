import { expect, test } from 'vitest';
import { nackOf, PLI } from '../../../../../test/fakes/fanout-bench.ts';
import { readNacks } from './nacks.ts';

test('NACKs are found inside compound packets', () => {
  expect(readNacks(Buffer.concat([nackOf(5, 65_535, 0b11), PLI]))).toEqual({
    nacks: [{ ssrc: 5, sequences: [65_535, 0, 1] }],
    other: true,
  });
  expect(readNacks(nackOf(5, 10, 0)).other).toBe(false);
});
