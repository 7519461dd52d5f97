import { expect, test } from 'vitest';
import { type FilePart, rangeOf } from './file-answer.ts';

test('a range may span several pieces of a file', () => {
  const part = {
    file: {} as FilePart['file'],
    ranges: [
      { offset: 0, length: 10 },
      { offset: 26, length: 20 },
    ],
  };
  expect(rangeOf(part, { offset: 8, length: 5 }).ranges).toEqual([
    { offset: 8, length: 2 },
    { offset: 26, length: 3 },
  ]);
  expect(rangeOf(part, { offset: 10, length: 20 }).ranges).toEqual([{ offset: 26, length: 20 }]);
  expect(rangeOf(part, { offset: 0, length: 1 }).ranges).toEqual([{ offset: 0, length: 1 }]);
});
