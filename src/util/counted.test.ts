import { expect, test } from 'vitest';
import { counted } from './counted.ts';

test.each([
  [0, '0 encodes'],
  [1, '1 encode'],
  [2, '2 encodes'],
])('%i is written as %s', (count, text) => {
  expect(counted(count, 'encode')).toBe(text);
});
