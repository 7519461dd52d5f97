import { expect, test } from 'vitest';
import { rawPath } from './request-path.ts';

test.each([
  ['/v1/version', '/v1/version'],
  ['/v1/version?x=/y', '/v1/version'],
  ['/v1/version#x', '/v1/version#x'],
  ['/v1/%76ersion', '/v1/%76ersion'],
  ['/v1/vhosts/a%2Fb', '/v1/vhosts/a%2Fb'],
  ['/v1/vhosts/%', '/v1/vhosts/%'],
  ['/v1/vhosts/%ED%98%B8%20', '/v1/vhosts/호%20'],
  ['/v1/vhosts/%ff', '/v1/vhosts/%ff'],
  ['//', '//'],
  ['http://user@host:1/v1/version?a', '/v1/version'],
  ['HTTPS://host', '/'],
  ['*', null],
  ['', null],
  ['host:443', null],
  ['/\u00ed', null],
])('the path of %j is %j', (target, path) => {
  expect(rawPath(target)).toBe(path);
});
