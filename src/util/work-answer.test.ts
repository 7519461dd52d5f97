import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { WorkThread } from './work-thread.ts';

const FILE = JSON.stringify(new URL('./work-answer.ts', import.meta.url));
/** Doubles numbers, and fails in several ways with texts. */
const ENTRY = `import(${FILE}).then(({ answerWork }) => answerWork(async (job) => {
    if (typeof job === 'number') return 2 * job;
    if (job === 'nothing') return undefined;
    if (job === 'text') throw 'a text';
    if (job === 'system') await require('node:fs/promises').readFile('/nowhere/at/all');
    throw Object.assign(new RangeError(job), { cause: () => 'a function crosses to no other thread', code: Symbol('code') });
  }));`;

test('a thread answers with results, and with reasons whatever was thrown', async () => {
  const worker = new Worker(ENTRY, { eval: true });
  const thread = new WorkThread<unknown, unknown>({
    entry: new URL('file:///nowhere'),
    name: 'x',
    most: 9,
    idle: 60_000,
    start: () => worker,
  });
  const answers = await Promise.allSettled(['text', 'system', 'own', 21, 'nothing'].map((job) => thread.run(job)));
  expect(answers).toMatchObject([
    { reason: { message: 'a text' } },
    { reason: { code: 'ENOENT', errno: expect.any(Number), message: expect.stringContaining('/nowhere/at/all') } },
    { reason: { message: 'own', stack: expect.stringContaining('RangeError: own') } },
    { value: 42 },
    { value: undefined },
  ]);
  for (const { status } of answers.slice(0, 3)) expect(status).toBe('rejected');
  await worker.terminate();
});
