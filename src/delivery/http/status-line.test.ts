import { describe, expect, test } from 'vitest';
import { DateLine, statusLine } from './status-line.ts';

describe('status and date', () => {
  test('lines are complete', () => {
    expect(statusLine(206)).toBe('HTTP/1.1 206 Partial Content\r\n');
    expect(statusLine(299)).toBe('HTTP/1.1 299 Unknown\r\n');
  });

  test('the date follows the clock', () => {
    let now = Date.UTC(2026, 10, 21, 9, 41, 9, 999);
    const date = new DateLine({ now: () => now, monotonic: () => 0 });
    expect(date.line).toBe('Date: Sat, 21 Nov 2026 09:41:09 GMT\r\n');
    now += 1;
    expect(date.line).toBe('Date: Sat, 21 Nov 2026 09:41:10 GMT\r\n');
  });
});
