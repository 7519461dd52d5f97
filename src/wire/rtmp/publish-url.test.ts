import { expect, test } from 'vitest';
import { parsePublishUrl } from './publish-url.ts';

test.each([
  ['rtmp://h/app', 'key', { secure: false, host: 'h', port: 1935, app: 'app', stream: 'key', tcUrl: 'rtmp://h/app' }],
  ['rtmps://h/app', 'key', { secure: true, host: 'h', port: 443, app: 'app', stream: 'key', tcUrl: 'rtmps://h/app' }],
  ['rtmp://h:1936/app/inst', 'k?t=1', { port: 1936, app: 'app/inst', stream: 'k?t=1', tcUrl: 'rtmp://h:1936/app/inst' }],
  ['rtmp://h/app?token=x', 'key', { app: 'app?token=x', stream: 'key', tcUrl: 'rtmp://h/app?token=x' }],
  ['rtmp://h/app/stream?token=x', '', { app: 'app', stream: 'stream?token=x', tcUrl: 'rtmp://h/app' }],
  ['rtmp://h/a/b/stream', '', { app: 'a/b', stream: 'stream' }],
  ['rtmp://h/app', '', { app: 'app', stream: '' }],
  ['rtmp://[2001:db8::1]:1935/app', 'key', { host: '2001:db8::1', tcUrl: 'rtmp://[2001:db8::1]:1935/app' }],
  ['RTMP://h/app', 'key', { secure: false, tcUrl: 'rtmp://h/app' }],
])('%s with the key %j', (url, key, expected) => {
  expect(parsePublishUrl(url, key)).toMatchObject(expected);
});

test.each([
  '',
  'rtmp://',
  'rtmp://h',
  'rtmp://h/',
  'http://h/app',
  'rtmp://h:0/app',
  'rtmp://h:65536/app',
  'rtmp://u:p@h/app',
  'rtmp://h /app',
  'rtmp://h/a b',
])('%j is refused', (url) => {
  expect(parsePublishUrl(url, 'key')).toBeNull();
});
