import { expect, test } from 'vitest';
import { laterHalf, riseOf, type Sample } from './support/trend.ts';

const series = (values: readonly number[]): Sample[] => values.map((value, at) => ({ at: 10 * at, value }));

test.each([
  ['what stays', [5, 5, 5, 5], 0],
  ['a series that grows by one each time', [1, 2, 3, 4], 3],
  ['what falls', [4, 3, 2, 1], -3],
  ['noise around a level', [5, 6, 5, 6, 5], 0],
  ['a single sample', [7], 0],
  ['none', [], 0],
])('the rise of %s', (_, values, rise) => {
  expect(riseOf(series(values))).toBeCloseTo(rise);
});

test('growth in the first half does not count', () => {
  expect(riseOf(laterHalf(series([0, 40, 80, 100, 100, 100, 100])))).toBeCloseTo(0);
});
