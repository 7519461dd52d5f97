import { expect, test } from 'vitest';
import { maskedUrl } from './masked-url.ts';

test.each([
  ['ovt://host:9000/app/stream', 'ovt://host:9000/app/stream'],
  ['ovt://host/app/stream?a=b&token=SECRET', 'ovt://host/app/stream?a=b&token=***'],
  ['rtmp://host/app/stream?KEY=SECRET&x=1', 'rtmp://host/app/stream?KEY=***&x=1'],
  ['srt://host/app/stream?policy=SECRET&signature=SECRET', 'srt://host/app/stream?policy=***&signature=***'],
  ['http://host/key=a?monkey=b&mytoken=c', 'http://host/key=a?monkey=b&mytoken=c'],
  ['http://host/?key=', 'http://host/?key=***'],
])('%s', (url, shown) => {
  expect(maskedUrl(url)).toBe(shown);
});
