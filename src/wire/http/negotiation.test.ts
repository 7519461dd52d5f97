import { describe, expect, test } from 'vitest';
import { acceptsGzip } from './accept-encoding.ts';
import { readRange } from './byte-range.ts';

describe('accept-encoding', () => {
  test.each([
    [undefined, false],
    ['', false],
    ['gzip, deflate, br', true],
    ['gzip', true],
    ['br', false],
    ['*', true],
    ['*;q=0', false],
    ['gzip;q=0', false],
    ['gzip;q=0.000, *', false],
    ['*;q=0, gzip', true],
    ['deflate, GZIP;q=0.5', true],
    ['identity;q=1, gzip; Q=0', false],
    ['gzip;q=0.001', true],
    ['x-gzip', true],
  ])('%j: %j', (header, expected) => {
    expect(acceptsGzip(header)).toBe(expected);
  });
});

describe('range', () => {
  test.each([
    [undefined, null],
    ['bytes=0-', { offset: 0, length: 100 }],
    ['bytes=0-0', { offset: 0, length: 1 }],
    ['bytes=10-19', { offset: 10, length: 10 }],
    ['bytes=90-500', { offset: 90, length: 10 }],
    ['bytes=-10', { offset: 90, length: 10 }],
    ['bytes=-500', { offset: 0, length: 100 }],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=100-', 'unsatisfiable'],
    ['bytes=20-10', null],
    ['bytes=-', null],
    ['bytes=0-1,5-6', null],
    ['lines=0-1', null],
    ['bytes=a-b', null],
    ['bytes=99999999999999999999-', 'unsatisfiable'],
    ['Bytes=95-', { offset: 95, length: 5 }],
    ['bytes=90-99999999999999999999', { offset: 90, length: 10 }],
    ['', null],
    ['bytes=0x1-2', null],
    ['bytes = 0-1', null],
  ])('%j of 100 bytes: %j', (header, expected) => {
    expect(readRange(header, 100)).toEqual(expected);
  });

  test('any range of an empty body is unsatisfiable', () => {
    expect(readRange('bytes=0-', 0)).toBe('unsatisfiable');
    expect(readRange('bytes=-1', 0)).toBe('unsatisfiable');
  });
});
