import { describe, expect, test } from 'vitest';
import { compileWildcard } from './wildcard.ts';

describe('wildcards', () => {
  test.each([
    ['*', '', true],
    ['*', 'anything at all', true],
    ['live.example.com', 'live.example.com', true],
    ['live.example.com', 'Live.example.com', false],
    ['live.example.com', 'liveXexample.com', false],
    ['*.example.com', 'a.b.example.com', true],
    ['*.example.com', 'example.com', false],
    ['*.example.com', '.example.com', true],
    ['cdn?.example.com', 'cdn.example.com', true],
    ['cdn?.example.com', 'cdn7.example.com', true],
    ['cdn?.example.com', 'cdn77.example.com', false],
    ['?', '', true],
    ['??', 'a', true],
    ['??', 'abc', false],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-b-c-d', false],
    ['(x)[y]^$', '(x)[y]^$', true],
    ['', '', true],
    ['', 'a', false],
  ])('%j against %j is %j', (pattern, text, expected) => {
    expect(compileWildcard(pattern)(text)).toBe(expected);
  });

  test('a hostile pair of pattern and text is matched in time', () => {
    const match = compileWildcard(`${'a*'.repeat(40)}b`);
    expect(match('a'.repeat(1024))).toBe(false);
  });

  test('an overlong text never matches', () => {
    expect(compileWildcard('a*')('a'.repeat(1025))).toBe(false);
  });
});
