import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const PROGRAM = `
  const { YoungHeap } = await import(${JSON.stringify(new URL('./young-heap.ts', import.meta.url).href)});
  const { setImmediate: turn } = await import('node:timers/promises');
  const heap = process.argv.includes('held') ? new YoungHeap() : null;
  let kept = [];
  let most = 0;
  for (let n = 0; n < 300; n += 1) {
    for (let i = 0; i < 10_000; i += 1) kept.push({ i, list: [i, i, i] });
    if (kept.length > 60_000) kept = kept.slice(20_000);
    await turn();
    most = Math.max(most, YoungHeap.size());
  }
  heap?.close();
  heap?.close();
  console.log(most / 2 ** 20);
`;

/** Maximum size of the young generation in a process that keeps much of what it allocates, MB. */
async function most(...args: string[]): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', PROGRAM, '--', ...args], {
    timeout: 60_000,
  });
  return Number(stdout);
}

test("the young generation stays near 16 MB, while V8's default grows beyond 30 MB", async () => {
  const [held, free] = await Promise.all([most('held'), most()]);
  // V8 adds single pages during a collection.
  expect(held).toBeLessThan(20);
  expect(free).toBeGreaterThan(30);
});
