import { describe, expect, test } from 'vitest';
import { connectUrl, publishTarget } from './publish-target.ts';

const LOCAL = { host: '192.0.2.1', port: 1935, scheme: 'rtmp' } as const;

describe('publish targets', () => {
  test.each([
    {
      name: 'the port is inserted and both queries are joined for access control',
      tcUrl: 'rtmp://media.example/app?a=1',
      key: 'stream?policy=p&signature=s',
      target: { host: 'media.example', app: 'app', stream: 'stream', url: 'rtmp://media.example:1935/app/stream?a=1&policy=p&signature=s' },
    },
    {
      name: 'a stream in the URL wins, the query of the key stays',
      tcUrl: 'rtmp://media.example:1936/app/first',
      key: 'second?b=2',
      target: { host: 'media.example', app: 'app', stream: 'first', url: 'rtmp://media.example:1936/app/first?b=2' },
    },
    {
      name: 'an absent host is the local address',
      tcUrl: 'rtmp:///app',
      key: 'stream',
      target: { host: '192.0.2.1', app: 'app', stream: 'stream', url: 'rtmp://192.0.2.1:1935/app/stream' },
    },
    {
      name: 'IPv6 brackets stay in the URL only',
      tcUrl: 'rtmp://[2001:db8::1]/app',
      key: 'stream',
      target: { host: '2001:db8::1', app: 'app', stream: 'stream', url: 'rtmp://[2001:db8::1]:1935/app/stream' },
    },
    { name: 'no stream name anywhere', tcUrl: 'rtmp://media.example/app', key: '?a=1', target: null },
  ])('$name', ({ tcUrl, key, target }) => {
    const url = connectUrl({ tcUrl, app: 'app' }, LOCAL);
    expect(publishTarget(url!, key)).toEqual(target);
  });

  test.each([
    { name: 'nothing', fields: { tcUrl: undefined, app: undefined } },
    { name: 'a URL without an application', fields: { tcUrl: 'rtmp://media.example', app: 'app' } },
    { name: 'values of wrong types', fields: { tcUrl: 5, app: null } },
    { name: 'an empty app', fields: { tcUrl: null, app: '' } },
  ])('$name names no application', ({ fields }) => {
    expect(connectUrl(fields, LOCAL)).toBeNull();
  });
});
