import { afterEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { EventLoopWatch } from './event-loop-watch.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

test('a stall counts for all timers that were due in it, a punctual look has no delay', () => {
  const clock = new ManualClock();
  const watch = new EventLoopWatch(clock, () => 0.5);
  watch.start();
  clock.advance(100);
  watch.look();
  expect([watch.delays.count, watch.delays.sum]).toEqual([1, 0]);
  clock.advance(100 + 250);
  watch.look();
  expect(watch.delays.count).toBe(4);
  expect(watch.delays.sum).toBeCloseTo(0.25 + 0.15 + 0.05);
  clock.advance(3_600_000);
  watch.look();
  expect(watch.delays.count).toBe(4 + 100);
  watch.stop();
});

test('looks come at random moments, ten a second on average, so that no other timer is in step with them', () => {
  const waits: number[] = [];
  const wait = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((_look: () => void, time: number) => {
    waits.push(time);
    return { unref: () => ({}) };
  }) as never);
  const clock = new ManualClock();
  const watch = new EventLoopWatch(clock);
  watch.start();
  for (let look = 0; look < 400; look += 1) {
    clock.advance(waits.at(-1) ?? 0);
    watch.look();
  }
  watch.stop();
  wait.mockRestore();
  expect([watch.delays.count, watch.delays.sum]).toEqual([400, 0]);
  expect(Math.min(...waits)).toBeLessThan(60);
  expect(Math.max(...waits)).toBeGreaterThan(140);
  const mean = waits.reduce((sum, time) => sum + time, 0) / waits.length;
  expect([mean > 90, mean < 110]).toEqual([true, true]);
  watch.look();
  expect(waits).toHaveLength(401);
});
