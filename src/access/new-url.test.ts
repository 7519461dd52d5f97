import { expect, test } from 'vitest';
import { readNewUrl, withPortOf } from './new-url.ts';

test.each([
  [
    'rtmp://127.0.0.1:1935/app/renamed',
    { scheme: 'rtmp', host: '127.0.0.1', authority: '127.0.0.1:1935', path: '/app/renamed', query: '' },
  ],
  ['srt://default/app/s?x=1?y', null],
  ['srt://default/app/s?x=1', { scheme: 'srt', host: 'default', authority: 'default', path: '/app/s', query: 'x=1' }],
  [
    'HTTPS://[2001:db8::1]:3334/app/s%2f/ts:playlist.m3u8?a=b&c',
    { scheme: 'https', host: '2001:db8::1', authority: '[2001:db8::1]:3334', path: '/app/s%2f/ts:playlist.m3u8', query: 'a=b&c' },
  ],
  ['ws://h/app/스트림', { scheme: 'ws', host: 'h', authority: 'h', path: '/app/스트림', query: '' }],
  ['ws://h/app', null],
  ['ws://h/app/', null],
  ['ws://h//s', null],
  ['ws:///app/s', null],
  ['//h/app/s', null],
  ['ws://user:pass@h/app/s', null],
  ['ws://h:0/app/s', null],
  ['ws://h:65536/app/s', null],
  ['ws://h/app/s#f', null],
  ['ws://h/app/s t', null],
  ['ws://h/app/s\r\nX: y', null],
  ['ws://h/app/s"', null],
  [`ws://h/app/${'s'.repeat(5000)}`, null],
  ['ws://h/app/\ud800', null],
])('%s', (text, parts) => {
  expect(readNewUrl(text)).toEqual(parts);
});

test.each([
  ['http://h/a/s?x', 'http://k:3333/b/t', 'http://h:3333/a/s?x'],
  ['http://h:80/a/s', 'http://k:3333/b/t', 'http://h:80/a/s'],
  ['http://[2001:db8::1]/a/s', 'http://[2001:db8::2]:3333/b/t', 'http://[2001:db8::1]:3333/a/s'],
  ['http://[2001:db8::1]:81/a/s', 'http://k:3333/b/t', 'http://[2001:db8::1]:81/a/s'],
  ['srt://h/a/s', 'srt://default/b/t', 'srt://h/a/s'],
])('%s instead of %s is %s', (newUrl, asked, whole) => {
  expect(withPortOf(newUrl, asked)).toBe(whole);
});
