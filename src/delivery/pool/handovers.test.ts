import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Handovers } from './handovers.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function isDone(done: Promise<void>): Promise<boolean> {
  return Promise.race([done.then(() => true), Promise.resolve().then(() => Promise.resolve(false))]);
}

test('end when every thread has applied it or has ended', async () => {
  const handovers = new Handovers();
  const { number, done } = handovers.begin([1, 2, 3]);
  const next = handovers.begin([1, 2, 3]);
  handovers.applied(1, number);
  handovers.applied(1, 0);
  handovers.threadGone(2);
  expect(await isDone(done)).toBe(false);
  handovers.applied(3, number);
  expect([await isDone(done), await isDone(next.done)]).toEqual([true, false]);
  handovers.applied(3, next.number);
  handovers.applied(1, next.number);
  expect(await isDone(next.done)).toBe(true);
});

test('end at once when no thread runs', async () => {
  expect(await isDone(new Handovers().begin([]).done)).toBe(true);
});

test('does not wait for a thread that hangs, nor beyond the end', async () => {
  const handovers = new Handovers();
  const [hanging, last] = [handovers.begin([1]), handovers.begin([1])];
  vi.advanceTimersByTime(4999);
  expect(await isDone(hanging.done)).toBe(false);
  vi.advanceTimersByTime(1);
  expect(await isDone(hanging.done)).toBe(true);
  handovers.close();
  handovers.close();
  expect(await isDone(last.done)).toBe(true);
});
