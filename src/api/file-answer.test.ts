import { expect, test } from 'vitest';
import { type FilePart, rangeOf, readRange } from './file-answer.ts';

test.each([
  ['bytes=0-0', { first: 0, last: 0 }],
  ['Bytes=5-', { first: 5, last: 9 }],
  ['bytes=8-99999999999999999999', { first: 8, last: 9 }],
  ['bytes=-3', { first: 7, last: 9 }],
  ['bytes=-99', { first: 0, last: 9 }],
  ['bytes=10-', 'none'],
  ['bytes=-0', 'none'],
  [undefined, null],
  ['', null],
  ['bytes=-', null],
  ['bytes=5-4', null],
  ['bytes=0-1,3-4', null],
  ['bytes=0x1-2', null],
  ['bytes = 0-1', null],
])('%s of ten bytes', (header, expected) => {
  expect(readRange(header, 10)).toEqual(expected);
});

test('nothing of an empty file can be asked for', () => {
  expect(readRange('bytes=0-', 0)).toBe('none');
  expect(readRange('bytes=-1', 0)).toBe('none');
});

test('a range may lie over several pieces of a file', () => {
  const part = {
    file: {} as FilePart['file'],
    ranges: [
      { offset: 0, length: 10 },
      { offset: 26, length: 20 },
    ],
  };
  expect(rangeOf(part, { first: 8, last: 12 }).ranges).toEqual([
    { offset: 8, length: 2 },
    { offset: 26, length: 3 },
  ]);
  expect(rangeOf(part, { first: 10, last: 29 }).ranges).toEqual([{ offset: 26, length: 20 }]);
  expect(rangeOf(part, { first: 0, last: 0 }).ranges).toEqual([{ offset: 0, length: 1 }]);
});
