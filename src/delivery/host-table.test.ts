import { describe, expect, test } from 'vitest';
import { HostTable } from './host-table.ts';

describe('host table', () => {
  const table = new HostTable();
  table.set([
    { name: 'one', hostNames: ['one.example', 'cdn?.example'] },
    { name: 'rest', hostNames: ['*.example', '::1'] },
  ]);

  test.each([
    ['one.example', 'one'],
    ['one.example:3333', 'one'],
    ['cdn1.example', 'one'],
    ['cdn12.example', 'rest'],
    ['ONE.example', 'rest'],
    ['[::1]:3333', 'rest'],
    ['example', null],
    ['', null],
  ])('%j is %j', (host, expected) => {
    expect(table.find(host)).toBe(expected);
    expect(table.find(host)).toBe(expected);
  });

  test('long headers are answered and not remembered, so that the memory of all names is small', () => {
    const other = new HostTable();
    other.set([{ name: 'b', hostNames: ['*'] }]);
    for (let n = 0; n < 2000; n += 1) expect(other.find(`${n}.${'x'.repeat(8000)}`)).toBe('b');
    expect(other.cached).toBe(0);
    for (let n = 0; n < 5000; n += 1) other.find(`${n}.${'x'.repeat(250)}`);
    expect(other.cached).toBeGreaterThan(0);
    expect(other.cached).toBeLessThanOrEqual(1024 * 260);
  });

  test('a new table counts at once', () => {
    const other = new HostTable();
    other.set([{ name: 'a', hostNames: ['x'] }]);
    expect(other.find('x')).toBe('a');
    other.set([{ name: 'b', hostNames: ['*'] }]);
    expect(other.find('x')).toBe('b');
    for (let n = 0; n < 3000; n += 1) expect(other.find(`h${n}`)).toBe('b');
  });
});
