import { describe, expect, it, test, vi } from 'vitest';
import { formatTimestamp, timeOf } from './timestamp.ts';

const two = (value: number): string => String(value).padStart(2, '0');

/** The expected text, from the local fields of a date. */
function expected(epochMs: number): string {
  const date = new Date(epochMs);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, '0')}`;
  const offset = -date.getTimezoneOffset();
  const minutes = Math.abs(offset);
  return `${day}T${time}${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

test('dates and times are parsed, other texts are NaN', () => {
  expect(timeOf('2030-01-31')).toBe(Date.UTC(2030, 0, 31));
  expect(timeOf('2030-01-31T18:00Z')).toBe(Date.UTC(2030, 0, 31, 18));
  expect(timeOf('2030-01-31T18:00:30.5+02:00')).toBe(Date.UTC(2030, 0, 31, 16, 0, 30, 500));
  for (const text of ['', '2030', '2030-13-01', '2030-01-31T18:00', '1893456000', 'Jan 31 2030']) expect(timeOf(text)).toBeNaN();
});

describe('formatTimestamp', () => {
  it('writes local time with milliseconds and the offset, all through a year of changing clocks', () => {
    const begin = Date.UTC(2026, 0, 1);
    // Steps of some hours reach all kinds of seconds and milliseconds.
    for (let at = begin; at < begin + 366 * 86_400_000; at += 17_337_791) expect(formatTimestamp(at)).toBe(expected(at));
  });

  it.each([0, 1, 9, 10, 99, 100, 999, -1, -999, -1000, 1_770_000_000_000.9])('writes %d', (at) => {
    expect(formatTimestamp(at)).toBe(expected(at));
  });

  it('keeps seconds apart that share a cache slot', () => {
    const begin = Date.UTC(2026, 1, 1);
    for (const seconds of [0, 256, 0, 512, 256]) expect(formatTimestamp(begin + seconds * 1000)).toBe(expected(begin + seconds * 1000));
  });

  it('asks the calendar once for all times of a second', () => {
    const offset = vi.spyOn(Date.prototype, 'getTimezoneOffset');
    try {
      const begin = Date.UTC(2031, 5, 1, 12);
      for (let ms = 0; ms < 1000; ms += 1) formatTimestamp(begin + ms);
      expect(offset).toHaveBeenCalledTimes(1);
    } finally {
      offset.mockRestore();
    }
  });

  it('refuses NaN and Infinity', () => {
    expect(() => formatTimestamp(Number.NaN)).toThrow(RangeError);
    expect(() => formatTimestamp(Number.POSITIVE_INFINITY)).toThrow(RangeError);
  });
});
