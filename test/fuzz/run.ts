/** Fuzzes in one plain process, for sanitizers and for a quick look: `node test/fuzz/run.ts NAME INPUTS SEED`. Exits with 1 on a failure. */
import { fuzz } from './support/fuzz-target.ts';
import { ALL_TARGETS } from './targets/index.ts';

const [name = '', inputs = '1000', seed = '1'] = process.argv.slice(2);

for (const target of ALL_TARGETS.filter((candidate) => candidate.name.includes(name))) {
  try {
    console.log(`${target.name}: ${await fuzz(target, Number(seed), { inputs: Number(inputs) })} inputs`);
  } catch (error) {
    console.log(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
