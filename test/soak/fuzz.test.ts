/**
 * All fuzz targets for a given time, guided by coverage, each in its own process: `FUZZ_SECONDS=3600 npm run test:soak --
 * test/soak/fuzz.test.ts`, by default four minutes for all. `FUZZ_SEED` repeats a run, `FUZZ_TARGET` selects by name, and `FUZZ_KEEP=1`
 * writes the reached inputs into the corpus.
 */
import { afterAll, describe, expect, test } from 'vitest';
import { guidedProcess } from '../fuzz/engine/guided-process.ts';
import { ALL_TARGETS } from '../fuzz/targets/index.ts';

const SECONDS = Number(process.env['FUZZ_SECONDS'] ?? 240);
const SEED = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 32);
const CHOSEN = ALL_TARGETS.filter(({ name }) => name.includes(process.env['FUZZ_TARGET'] ?? ''));
const KEEPS = process.env['FUZZ_KEEP'] === undefined ? 'nothing' : 'what-it-reached';
/** Memory that a target may keep: its inputs, and compiled code. */
const MAX_GROWTH_MIB = 32;
const SHARE_MS = (SECONDS * 1000) / CHOSEN.length;
/** Time for loading, seeds, and the choice of kept inputs. */
const AROUND_MS = 120_000;

let executions = 0;

describe(`fuzzing with seed ${SEED}`, () => {
  test.each(CHOSEN.map(({ name }) => name))(
    '%s',
    async (name) => {
      const run = await guidedProcess(name, { milliseconds: SHARE_MS, seed: SEED, keeps: KEEPS });
      executions += run.executions;
      const speed = Math.round(run.executions / run.seconds);
      console.log(
        `${name}: ${run.executions} executions, ${speed} a second; ${run.blocks} of ${run.blocksInFiles} blocks by ${run.inputs} inputs` +
          `${run.kept === 0 ? '' : `, ${run.kept} kept`}; ${percent(run.work)} of the work and ${percent(run.memory)} of the memory that is` +
          ` allowed, ${run.grown.toFixed(1)} MiB more at the end`,
      );
      expect(run.executions).toBeGreaterThan(0);
      expect(run.grown).toBeLessThan(MAX_GROWTH_MIB);
    },
    SHARE_MS + AROUND_MS,
  );
  afterAll(() => console.log(`${executions} executions in all`));
});

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}
