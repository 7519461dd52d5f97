import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { modeOf, parseStreamId } from './stream-id.ts';

const target = (host: string, app: string, stream: string, playlist: string | null, url: string): object => ({
  host,
  app,
  stream,
  playlist,
  url,
});

describe('stream ids', () => {
  test.each([
    ['default/app/stream', target('default', 'app', 'stream', null, 'srt://default/app/stream')],
    ['host.example/app/stream/master', target('host.example', 'app', 'stream', 'master', 'srt://host.example/app/stream/master')],
    [
      'default/app/stream?policy=abc&signature=d',
      target('default', 'app', 'stream', null, 'srt://default/app/stream?policy=abc&signature=d'),
    ],
    ['default/app/stream?a=b?c=d', target('default', 'app', 'stream', null, 'srt://default/app/stream?a=b?c=d')],
    ['default/app/stream/', target('default', 'app', 'stream', null, 'srt://default/app/stream/')],
    ['srt://host.example:9999/app/stream', target('host.example', 'app', 'stream', null, 'srt://host.example:9999/app/stream')],
    ['srt://[::1]:9999/app/stream', target('::1', 'app', 'stream', null, 'srt://[::1]:9999/app/stream')],
    [
      'srt%3A%2F%2Fhost.example%3A9999%2Fapp%2Fstream%3Fa%3Db',
      target('host.example', 'app', 'stream', null, 'srt://host.example:9999/app/stream?a=b'),
    ],
    ['default%2Fapp%2Fstra%C3%9Fe', target('default', 'app', 'straße', null, 'srt://default/app/straße')],
    ['default/app/100%', target('default', 'app', '100%', null, 'srt://default/app/100%')],
    ['#!::u=default/app/stream,m=publish', target('default', 'app', 'stream', null, 'srt://default/app/stream')],
    [
      '#!::m=publish,u=srt://host.example:9999/app/stream?a=b',
      target('host.example', 'app', 'stream', null, 'srt://host.example:9999/app/stream?a=b'),
    ],
    ['#!::r=default/app/stream', null],
    [
      '#!::h=host.example,r=app/stream/master,m=request',
      target('host.example', 'app', 'stream', 'master', 'srt://host.example/app/stream/master'),
    ],
    ['#!::u=admin,r=/app/stream?a=b,h=default', target('default', 'app', 'stream', null, 'srt://default/app/stream?a=b')],
    ['#!::u=default/app/one,h=default,r=app/other', target('default', 'app', 'one', null, 'srt://default/app/one')],
    [
      '#!::h=default,r=app/stream?key=a-key,m=publish,s=another-key',
      { ...target('default', 'app', 'stream', null, 'srt://default/app/stream?key=a-key'), key: 'another-key' },
    ],
    ['#!::s=a-key,u=default/app/stream', { ...target('default', 'app', 'stream', null, 'srt://default/app/stream'), key: 'a-key' }],
    ['#!::s=a-key', null],
    ['#!::h=default', null],
    ['#!::h=default,r=stream', null],
    ['#!::u=admin', null],
    ['', null],
    ['stream', null],
    ['app/stream', null],
    ['default/app/stream/master/more', null],
    ['/app/stream', null],
    ['default//stream', null],
    ['default/app/', null],
    ['srt:///app/stream', null],
    ['rtmp://host/app/stream', null],
    ['default/app/%ff', null],
  ])('%s', (text, expected) => {
    expect(parseStreamId(text)).toEqual(expected);
  });

  test.each([
    ['#!::u=default/app/stream,m=publish', 'publish'],
    ['#!::m=request,r=x', 'request'],
    ['%23!%3A%3Am%3Dbidirectional', 'bidirectional'],
    ['#!::u=default/app/stream', null],
    ['default/app/stream?m=publish', null],
    ['default/app/%ff', null],
    ['', null],
  ])('the mode of %s', (text, mode) => {
    expect(modeOf(text)).toBe(mode);
  });

  test('any text is read or refused', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const parsed = parseStreamId(text);
        if (parsed !== null) expect([parsed.host, parsed.app, parsed.stream]).not.toContain('');
      }),
    );
  });
});
