import { expect, test } from 'vitest';
import { systemClock } from './clock.ts';

test('advances during a callback', () => {
  const [wall, ticks] = [systemClock.now(), systemClock.monotonic()];
  const until = performance.now() + 5;
  while (performance.now() < until);
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(ticks + 5);
  expect(systemClock.now()).toBeGreaterThanOrEqual(wall + 4);
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000);
});
