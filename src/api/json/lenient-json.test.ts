import fc from 'fast-check';
import { expect, test } from 'vitest';
import { atOnce } from '../../util/in-slices.ts';
import { JsonSyntaxError, jsonSteps, MAX_JSON_DEPTH, readJson } from './lenient-json.ts';

test.each([
  ['/* c */ [] // d', []],
  ['[{"name":"tc"},]', [{ name: 'tc' }]],
  ['{"a":1,}', { a: 1 }],
  ['\ufeff[]', []],
  ['[] xyz', []],
  ['[] []', []],
  ['{"a":1,"a":2}', { a: 2 }],
  ['"\\ud638\\ud83d\\ude00\\/\\b"', '호😀/\b'],
  ['"a\nb"', 'a\nb'],
  ['// only\r\n5', 5],
  ['{"a"/**/:/**/1/**/,/**/"b":2/**/}', { a: 1, b: 2 }],
  ['-0.5e+2', -50],
  ['true', true],
])('accepts %j', (text, value) => {
  expect(readJson(text)).toEqual(value);
});

const EXPECTED = 'Syntax error: value, object or array expected.';

test.each([
  [' ', '* Line 1, Column 2', EXPECTED],
  ['a=b', '* Line 1, Column 1', EXPECTED],
  ['[', '* Line 1, Column 2', EXPECTED],
  ['[,]', '* Line 1, Column 2', EXPECTED],
  ["['a']", '* Line 1, Column 2', EXPECTED],
  ['NaN', '* Line 1, Column 1', EXPECTED],
  ['tru', '* Line 1, Column 1', EXPECTED],
  ['"open', '* Line 1, Column 1', EXPECTED],
  ['/* open', '* Line 1, Column 1', EXPECTED],
  ['/', '* Line 1, Column 1', EXPECTED],
  ['{', '* Line 1, Column 2', "Missing '}' or object member name"],
  ['{bad', '* Line 1, Column 2', "Missing '}' or object member name"],
  ['{1:2}', '* Line 1, Column 2', "Missing '}' or object member name"],
  ['{"a" 1}', '* Line 1, Column 6', "Missing ':' after object member name"],
  ['[{"name":"x"', '* Line 1, Column 13', "Missing ',' or '}' in object declaration"],
  ['[1\n  2]', '* Line 2, Column 3', "Missing ',' or ']' in array declaration"],
  ['-', '* Line 1, Column 1', "'-' is not a number."],
  ['1e999', '* Line 1, Column 1', "'1e999' is not a number."],
])('refuses %j with the position', (text, position, reason) => {
  expect(() => readJson(text)).toThrow(new JsonSyntaxError(`${position}\n  ${reason}\n`));
});

test('a bad escape is reported with the string and the place inside it', () => {
  expect(() => readJson('"ab\\x"')).toThrow('* Line 1, Column 1\n  Bad escape sequence in string\nSee Line 1, Column 4 for detail.\n');
  expect(() => readJson('"\\u12"')).toThrow('Bad unicode escape sequence in string: four hexadecimal digits expected.');
  expect(() => readJson('"\\ud800x"')).toThrow('surrogate pair expected');
});

test('a member named __proto__ is an ordinary member', () => {
  const value = readJson('{"__proto__":{"polluted":true}}');
  expect(Object.keys(value as object)).toEqual(['__proto__']);
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
});

test('nesting is bounded', () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  expect(() => readJson(nested(MAX_JSON_DEPTH))).not.toThrow();
  expect(() => readJson(nested(MAX_JSON_DEPTH + 2))).toThrow(JsonSyntaxError);
  expect(() => readJson('['.repeat(1_048_576))).toThrow(JsonSyntaxError);
});

test('reads every JSON document as JSON.parse does', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: 'grapheme' }), fc.constantFrom(undefined, 1, '\t'), (text, space) => {
      const pretty = JSON.stringify(JSON.parse(text), null, space);
      expect(readJson(pretty)).toEqual(JSON.parse(pretty));
    }),
  );
});

test('any text is read or refused with a position', () => {
  const token = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '\\u',
    'd800',
    '/',
    '*',
    '-',
    '1',
    'e',
    '.',
    'true',
    'null',
    ' ',
    '\n',
    '\ufeff',
    'x',
  );
  fc.assert(
    fc.property(fc.array(token, { maxLength: 40 }), (tokens) => {
      try {
        readJson(tokens.join(''));
      } catch (error) {
        expect(error).toBeInstanceOf(JsonSyntaxError);
        expect((error as Error).message).toMatch(/^\* Line \d+, Column \d+\n {2}/);
      }
    }),
    { numRuns: 2000 },
  );
});

/** The value, or the text of the refusal. */
function outcome(read: () => unknown): unknown {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error.message;
    throw error;
  }
}

test('in steps, any text is read or refused as at once', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', ']', '"', ':', '//', '[1,]', '{"a":1,}', '\\'), (text, at, more) => {
      const cut = at % (text.length + 1);
      for (const each of [text, text.slice(0, cut), text.slice(0, cut) + more + text.slice(cut), text + more]) {
        expect(outcome(() => atOnce(jsonSteps(each)))).toEqual(outcome(() => readJson(each)));
      }
    }),
  );
  const deep = '['.repeat(MAX_JSON_DEPTH + 2);
  expect(outcome(() => atOnce(jsonSteps(deep)))).toEqual(outcome(() => readJson(deep)));
});

test('each item of the upper levels is a step', () => {
  const programs = Array.from({ length: 50 }, () => ({ items: Array.from({ length: 20 }, () => ({ url: 'file://a', list: [1, 2, 3] })) }));
  expect([...jsonSteps(JSON.stringify({ programs }))].length).toBeGreaterThanOrEqual(50 * 20);
  expect([...jsonSteps(JSON.stringify([{ applications: programs }]))].length).toBeGreaterThanOrEqual(50);
});
