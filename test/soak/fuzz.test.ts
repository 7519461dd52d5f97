/**
 * Every target of the fuzz tests for as long as it takes: `FUZZ_SECONDS=3600 npm run test:soak`, by default two minutes in all.
 * `FUZZ_SEED` repeats a run, `FUZZ_TARGET` chooses by name, `FUZZ_TRACE=FILE` keeps every input for what ends the process.
 */
import { describe, expect, test } from 'vitest';
import { fuzz } from '../fuzz/support/fuzz-target.ts';
import { ALL_TARGETS } from '../fuzz/targets/index.ts';
import { memoryInUse } from '../support/memory.ts';

const SECONDS = Number(process.env['FUZZ_SECONDS'] ?? 120);
const SEED = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 32);
const CHOSEN = ALL_TARGETS.filter(({ name }) => name.includes(process.env['FUZZ_TARGET'] ?? ''));
/** What a target may leave behind: its seeds, and code that was compiled. */
const MOST_GROWTH_MIB = 32;
const SHARE_MS = (SECONDS * 1000) / CHOSEN.length;

describe(`fuzzing with seed ${SEED}`, () => {
  test.each(CHOSEN.map((target) => [target.name, target] as const))(
    '%s',
    async (name, target) => {
      const before = await memoryInUse();
      const ran = await fuzz(target, SEED, { until: performance.now() + SHARE_MS });
      const grown = ((await memoryInUse()).held - before.held) / 2 ** 20;
      console.log(`${name}: ${ran} inputs, ${grown.toFixed(1)} MiB more`);
      expect(ran).toBeGreaterThan(0);
      expect(grown).toBeLessThan(MOST_GROWTH_MIB);
    },
    SHARE_MS + 120_000,
  );
});
