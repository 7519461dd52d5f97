import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readCapabilities } from './oven-capabilities.ts';

test.each([
  ['max_width=1280, max_height=720, max_fps=29.97', [['', { width: 1280, height: 720, framerate: 29.97 }]]],
  [
    'rid:hi:max_width=1280,rid:hi:max_height=720,rid:0:max_width=640',
    [
      ['hi', { width: 1280, height: 720, framerate: 0 }],
      ['0', { width: 640, height: 0, framerate: 0 }],
    ],
  ],
  ['max_width=99999, max_height=-1, max_fps=0, max_width=1.5, min_width=3, max_height', []],
  ['', []],
])('%j is %j', (header, expected) => {
  expect([...readCapabilities(header)]).toEqual(expected);
});

test('arbitrary text is read, at most 24 entries of it', () => {
  fc.assert(fc.property(fc.string(), (text) => readCapabilities(text).size <= 24));
  const many = Array.from({ length: 1000 }, (_, n) => `rid:${n}:max_fps=1`).join(',');
  expect(readCapabilities(many).size).toBe(24);
});
