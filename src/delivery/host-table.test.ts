import { afterEach, describe, expect, test, vi } from 'vitest';
import { HostNameTable } from '../core/host-name-table.ts';
import { HostTable } from './host-table.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

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

  test('long headers are looked up each time, and only so many short ones are remembered', () => {
    const other = new HostTable();
    other.set([{ name: 'b', hostNames: ['*'] }]);
    const lookUp = vi.spyOn(HostNameTable.prototype, 'find');
    const lookUps = (host: string): number => {
      lookUp.mockClear();
      expect(other.find(host)).toBe('b');
      return lookUp.mock.calls.length;
    };
    const [long, short] = ['x'.repeat(261), 'x'.repeat(260)];
    expect([lookUps(long), lookUps(long)]).toEqual([1, 1]);
    expect([lookUps(short), lookUps(short)]).toEqual([1, 0]);
    for (let n = 0; n < 1023; n += 1) expect(lookUps(`${n}.example`)).toBe(1);
    expect(lookUps(short)).toBe(0);
    // The cache is full: it keeps none of these.
    expect(lookUps('one.more')).toBe(1);
    expect(lookUps(short)).toBe(1);
    expect(lookUps('one.more')).toBe(0);
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
