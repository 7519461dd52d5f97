import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { StreamArrivals } from './stream-arrivals.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function setUp(...coming: string[]) {
  const playable = new Set<string>();
  const names = new Set(coming);
  const arrivals = new StreamArrivals({ isPlayable: (name) => playable.has(name), isComing: (name) => names.has(name) });
  return { arrivals, playable, names };
}

it('answers at once for a playable stream and for an absent stream', async () => {
  const { arrivals, playable } = setUp();
  playable.add('there');
  expect(await Promise.all([arrivals.wait('there', 1000), arrivals.wait('nowhere', 1000)])).toEqual([true, false]);
  expect(vi.getTimerCount()).toBe(0);
});

it('answers all waiting requests of a playable stream, and no other requests', async () => {
  const { arrivals, playable } = setUp('a', 'b');
  const waits = [arrivals.wait('a', 1000), arrivals.wait('a', 1000), arrivals.wait('b', 1000)];
  arrivals.look();
  expect(arrivals.waiting).toBe(3);
  playable.add('a');
  arrivals.look();
  expect(await Promise.all(waits.slice(0, 2))).toEqual([true, true]);
  expect([arrivals.waiting, vi.getTimerCount()]).toEqual([1, 1]);
});

it('answers no when the source leaves, and when the time is over', async () => {
  const { arrivals, names } = setUp('a', 'b');
  const [first, second] = [arrivals.wait('a', 1000), arrivals.wait('b', 1000)];
  names.delete('a');
  arrivals.look();
  expect(await first).toBe(false);
  vi.advanceTimersByTime(999);
  expect(arrivals.waiting).toBe(1);
  vi.advanceTimersByTime(1);
  expect(await second).toBe(false);
});
