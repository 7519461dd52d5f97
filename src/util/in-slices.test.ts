import { expect, test, vi } from 'vitest';
import { inSlices } from './in-slices.ts';

/** Each step takes `ms` by a clock of the test; tells how many steps were done at each turn of the event loop. */
async function turnsOf(steps: number, ms: number): Promise<number[]> {
  let now = 0;
  let done = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  const turns: number[] = [];
  const turn = (): void => {
    turns.push(done);
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  function* work() {
    for (; done < steps; done += 1) {
      now += ms;
      yield;
    }
  }
  await inSlices(work());
  clearImmediate(next);
  clock.mockRestore();
  expect(done).toBe(steps);
  return turns;
}

test('work of more than a slice lets the event loop turn after each three milliseconds', async () => {
  expect(await turnsOf(10, 1)).toEqual([2, 5, 8]);
});

test('short work is done at once', async () => {
  expect(await turnsOf(100, 0.01)).toEqual([]);
});

test('an exception of a step ends the work', async () => {
  function* work() {
    yield;
    throw new Error('step 2');
  }
  await expect(inSlices(work())).rejects.toThrow('step 2');
});
