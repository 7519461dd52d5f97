/** One guided run in a process of its own, which `guided-process.ts` starts, because a target may crash or hang. */
import { openSync } from 'node:fs';
import { messageOf } from '../../../src/util/message-of.ts';
import { ALL_TARGETS } from '../targets/index.ts';
import { coverage } from './coverage.ts';
import { guidedFuzz } from './guided-fuzz.ts';
import type { GuidedAnswer, GuidedOrder } from './guided-process.ts';

process.once('message', (order: GuidedOrder) => {
  void run(order).then((answer) => process.send?.(answer, () => process.exit()));
});

async function run({ name, file, ...options }: GuidedOrder): Promise<GuidedAnswer> {
  const target = ALL_TARGETS.find((candidate) => candidate.name === name);
  if (target === undefined) return { type: 'failed', why: `there is no target ${name}` };
  try {
    return { type: 'done', result: await guidedFuzz(target, coverage(), { ...options, inputFile: openSync(file, 'w+') }) };
  } catch (error) {
    return { type: 'failed', why: messageOf(error) };
  }
}
