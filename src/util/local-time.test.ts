import { afterEach, describe, expect, it } from 'vitest';
import { isoLocalTime } from './local-time.ts';

describe('isoLocalTime', () => {
  const zone = process.env['TZ'];
  afterEach(() => {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
  });

  it.each([
    ['Asia/Seoul', '2026-01-11T21:10:10.123+09:00'],
    ['UTC', '2026-01-11T12:10:10.123+00:00'],
    ['America/St_Johns', '2026-01-11T08:40:10.123-03:30'],
  ])('prints the offset of %s', (name, expected) => {
    process.env['TZ'] = name;
    expect(isoLocalTime(Date.UTC(2026, 0, 11, 12, 10, 10, 123))).toBe(expected);
  });
});
