import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Real } from '../../monitoring/real.ts';
import { jsonPieces, writeJson } from './json-writer.ts';

test.each([
  [{ b: 1, a: [true, null], B: 'x', aa: {} }, '{"B":"x","a":[true,null],"aa":{},"b":1}'],
  [{ gone: undefined, kept: 0 }, '{"kept":0}'],
  ['호😀/"\\\n\u0001', '"\\ud638\\ud83d\\ude00/\\"\\\\\\n\\u0001"'],
  [{ é: 1 }, '{"\\u00e9":1}'],
  [[new Real(30), new Real(29.97), new Real(0), new Real(Number.NaN)], '[30.0,29.97,0.0,0.0]'],
  [9_007_199_254_740_991, '9007199254740991'],
  [-0.5, '-0.5'],
])('writes %j', (value, text) => {
  expect(writeJson(value)).toBe(text);
  expect([...jsonPieces(value)].join('')).toBe(text);
});

test('writes arbitrary values as ASCII that parses to the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'grapheme' }), (value) => {
      const text = writeJson(value);
      expect(text).toMatch(/^[\u0020-\u007f]*$/);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      for (const levels of [0, 1, 2, 9]) expect([...jsonPieces(value, levels)].join('')).toBe(text);
    }),
  );
});

test('writes more and longer keys than it caches', () => {
  const keys = Array.from({ length: 1500 }, (_unused, index) => `key ${1000 + index}`).concat('z'.repeat(100));
  const value = Object.fromEntries(keys.map((key) => [key, key]));
  for (let time = 0; time < 2; time += 1) expect(writeJson(value)).toBe(JSON.stringify(value));
});
