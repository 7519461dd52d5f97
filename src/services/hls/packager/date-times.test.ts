import { expect, test } from 'vitest';
import { DateTimes } from './date-times.ts';

const START = 1_800_000_000_000;

test('begins with the estimate, and follows small differences exactly', () => {
  let epoch = START;
  const dates = new DateTimes(() => epoch);
  expect(dates.epochAt(500)).toBe(START);
  epoch = START + 5;
  expect(dates.epochAt(6500)).toBe(START + 5);
  epoch = START;
  expect(dates.epochAt(12_500)).toBe(START);
});

test('follows a jump by a thousandth of the media, in both directions, so that a playlist has no gap in its date-times', () => {
  let epoch = START;
  const dates = new DateTimes(() => epoch);
  dates.epochAt(0);
  epoch = START + 23_000;
  const steps = Array.from({ length: 12 }, (_, n) => dates.epochAt((n + 1) * 6000));
  expect(steps).toEqual(steps.map((_, n) => START + (n + 1) * 6));
  epoch = START - 23_000;
  expect(dates.epochAt(13 * 6000)).toBe(START + 66);
});

test('follows at once at a discontinuity', () => {
  let epoch = START;
  const dates = new DateTimes(() => epoch);
  dates.epochAt(0);
  epoch = START + 23_000;
  expect(dates.epochAt(6000, true)).toBe(START + 23_000);
  epoch = START + 23_003;
  expect(dates.epochAt(12_000)).toBe(START + 23_003);
});

test('gives media that lies before the last asked for the same epoch', () => {
  let epoch = START;
  const dates = new DateTimes(() => epoch);
  dates.epochAt(6000);
  epoch = START + 1000;
  expect([dates.epochAt(12_000), dates.epochAt(11_000), dates.epochAt(12_000)]).toEqual([START + 6, START + 6, START + 6]);
});
