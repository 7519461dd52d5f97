import { expect, test } from 'vitest';
import { timeOf } from './time-text.ts';

test('dates and times are parsed, other texts are NaN', () => {
  expect(timeOf('2030-01-31')).toBe(Date.UTC(2030, 0, 31));
  expect(timeOf('2030-01-31T18:00Z')).toBe(Date.UTC(2030, 0, 31, 18));
  expect(timeOf('2030-01-31T18:00:30.5+02:00')).toBe(Date.UTC(2030, 0, 31, 16, 0, 30, 500));
  for (const text of ['', '2030', '2030-13-01', '2030-01-31T18:00', '1893456000', 'Jan 31 2030']) expect(timeOf(text)).toBeNaN();
});
