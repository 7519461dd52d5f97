import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LiveClock } from './live-updates.ts';

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('document', { hidden: false });
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function followed(clock: LiveClock) {
  const calls = { figures: 0, names: 0 };
  const leave = [
    clock.follow(() => {
      calls.figures += 1;
    }),
    clock.follow(() => {
      calls.names += 1;
    }, 'names'),
  ];
  return { calls, leave: () => leave.map((each) => each()) };
}

test('without events everything is read every two seconds, and nothing while the page is hidden', () => {
  const { calls, leave } = followed(new LiveClock());
  vi.advanceTimersByTime(6000);
  expect(calls).toEqual({ figures: 3, names: 3 });
  vi.stubGlobal('document', { hidden: true });
  vi.advanceTimersByTime(60_000);
  expect(calls).toEqual({ figures: 3, names: 3 });
  leave();
  expect(vi.getTimerCount()).toBe(0);
});

test('while events arrive, the names are read once per burst of changes, and every minute', () => {
  const clock = new LiveClock();
  clock.isTold = true;
  const { calls } = followed(clock);
  vi.advanceTimersByTime(2000);
  const names = calls.names;
  vi.advanceTimersByTime(20_000);
  expect(calls.names).toBe(names);
  for (let n = 0; n < 100; n += 1) clock.changed();
  vi.advanceTimersByTime(300);
  expect(calls.names).toBe(names + 1);
  vi.advanceTimersByTime(40_000);
  expect(calls.names).toBe(names + 2);
});
