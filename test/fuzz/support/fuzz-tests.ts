/** One test for each target: the corpus, then the same mutations each time. */
import { describe, expect, test } from 'vitest';
import { type FuzzTarget, fuzz } from './fuzz-target.ts';

const SEED = 20_261_121;
const INPUTS = 1000;

/** Declares the tests of an area. */
export function fuzzTests(area: string, targets: readonly FuzzTarget[]): void {
  describe(`${area}: hostile bytes cost a ProtocolError at most`, () => {
    test.each(targets.map((target) => [target.name, target] as const))('%s', async (_, target) => {
      expect(await fuzz(target, SEED, { inputs: INPUTS })).toBeGreaterThan(0);
    });
  });
}
