import { expect, test } from 'vitest';
import { ForcedKeyframes } from './keyframe-schedule.ts';

test('the first frame at a forced instant is a keyframe, once', () => {
  const forced = new ForcedKeyframes();
  forced.add(6000);
  forced.add(3000);
  expect([0, 2900, 2950, 3100, 6000, 9000].map((pts) => forced.due(pts))).toEqual([false, false, true, false, true, false]);
});

test('several past times cause one keyframe', () => {
  const forced = new ForcedKeyframes();
  for (const pts of [1000, 2000, 9000]) forced.add(pts);
  expect([5000, 6000, 9000].map((pts) => forced.due(pts))).toEqual([true, false, true]);
});

test('the oldest of more than 64 forced keyframes are forgotten', () => {
  const forced = new ForcedKeyframes();
  for (let n = 1; n <= 100; n += 1) forced.add(n * 3000);
  expect(forced.due(36 * 3000)).toBe(false);
  expect(forced.due(37 * 3000)).toBe(true);
});
