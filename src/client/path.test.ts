import { expect, test } from 'vitest';
import { pathWith } from './path.ts';

test.each([
  ['live', 'live'],
  ["a+b=c,d;e@f~g!h$i&j'k(l)m*n.o_p-q", "a+b=c,d;e@f~g!h$i&j'k(l)m*n.o_p-q"],
  // The server takes the percent sign as it is.
  ['50%', '50%'],
  ['a%20b', 'a%20b'],
  ['größe', 'gr%C3%B6%C3%9Fe'],
  ['😀', '%F0%9F%98%80'],
  ['a/b', 'a%2Fb'],
  ['a?b#c', 'a%3Fb%23c'],
  ['a b', 'a%20b'],
  ['"<>^`{}\\', '%22%3C%3E%5E%60%7B%7D%5C'],
  ['a\r\nb', 'a%0D%0Ab'],
  ['...', '...'],
  ['a:b', 'a:b'],
])('%j is encoded in a path as %s, and URL keeps that unchanged', (name, segment) => {
  expect(pathWith('/v1/{stream}/x', { stream: name })).toBe(`/v1/${segment}/x`);
  expect(new URL(pathWith('/v1/{stream}/x', { stream: name }), 'http://h').pathname).toBe(`/v1/${segment}/x`);
});

test('no name of an application begins an action', () => {
  expect(pathWith('/v1/vhosts/{vhost}/apps/{app}:records', { vhost: 'v', app: 'a:stopRecord' })).toBe(
    '/v1/vhosts/v/apps/a%3AstopRecord:records',
  );
});

test.each(['', '.', '..', '%2e%2E', '%C3%A9', '\ud800'])('%j cannot be named', (name) => {
  expect(() => pathWith('/{stream}', { stream: name })).toThrow(TypeError);
  expect(() => pathWith('/{stream}', { stream: name })).toThrow('{stream}');
});

test('a missing path parameter is an error, a missing query parameter is left out', () => {
  expect(() => pathWith('/{stream}', { app: 'x' })).toThrow('The path needs a name for {stream}');
  expect(pathWith('/s', {}, { protocol: 'llhls,srt', other: undefined })).toBe('/s?protocol=llhls%2Csrt');
  expect(pathWith('/s', {}, { other: undefined })).toBe('/s');
});
