import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock } from './clock.ts';

test('stands still while a callback runs and goes on with the next', async () => {
  await delay(1);
  const [wall, ticks] = [systemClock.now(), systemClock.monotonic()];
  const until = performance.now() + 5;
  while (performance.now() < until);
  expect([systemClock.now(), systemClock.monotonic()]).toEqual([wall, ticks]);
  await delay(5);
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(ticks + 5);
  expect(systemClock.now()).toBeGreaterThanOrEqual(wall + 5);
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000);
});
