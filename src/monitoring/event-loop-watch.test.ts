import { expect, test } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { EventLoopWatch } from './event-loop-watch.ts';

test('a stall counts for all timers that were due in it, a punctual look has no delay', () => {
  const clock = new ManualClock();
  const watch = new EventLoopWatch(clock);
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
