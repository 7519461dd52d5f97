import { expect, test } from 'vitest';
import { parseHostUrl } from './host-url.ts';
import { faultOfUrl, pushProtocolOf, receiverOf, storedPushRequest, trimUrl } from './push-request.ts';

test.each([
  ['rtmp', 'rtmp://h/app', null],
  ['rtmp', 'RTMPS://h:443/app', null],
  ['rtmp', 'rtmp://[::1]:1935/app', null],
  ['rtmp', 'srt://h:1', 'scheme'],
  ['rtmp', 'h/app', 'malformed'],
  ['rtmp', 'rtmp://', 'malformed'],
  ['rtmp', 'rtmp://user:secret@h/app', 'malformed'],
  ['rtmp', 'rtmp://h:65536/app', 'port'],
  ['rtmp', 'rtmp://h:0/app', 'port'],
  ['srt', 'srt://h', null],
  ['mpegts', 'tcp://h', null],
  ['srt', 'srt://h:0', 'port'],
  ['srt', 'srt://h:0?mode=caller', 'port'],
  ['mpegts', 'udp://[::1]', null],
  ['mpegts', 'tcp://h:70000', 'port'],
  ['srt', 'srt://h:1', null],
  ['srt', 'srt://h:1?mode=caller&latency=120000', null],
  ['srt', 'srt://h:1?mode=listener', 'mode'],
  ['srt', 'srt://h:1?mode=rendezvous', 'mode'],
  ['mpegts', 'udp://h:1', null],
  ['mpegts', 'tcp://h:1', null],
  ['mpegts', 'tcp://h:1?listen', 'listen'],
  ['mpegts', 'tcp://h:1?listen=1', 'listen'],
  ['mpegts', 'rtp://h:1', 'scheme'],
] as const)('%s accepts %s? %s', (protocol, url, fault) => {
  expect(faultOfUrl(protocol, url)).toBe(fault);
});

test.each([
  ['srt://h?latency=120000', { scheme: 'srt', host: 'h', port: 9999 }],
  ['udp://[::1]', { scheme: 'udp', host: '::1', port: 4000 }],
  ['TCP://h/x', { scheme: 'tcp', host: 'h', port: 4000 }],
  ['udp://h:5000', { scheme: 'udp', host: 'h', port: 5000 }],
])('%s is parsed to %j', (url, expected) => {
  expect(parseHostUrl(url)).toMatchObject(expected);
});

test('names and URLs are accepted in any case and with spaces around them', () => {
  expect([' RTMP ', 'Srt', 'mpegts', 'rtp', ''].map(pushProtocolOf)).toEqual(['rtmp', 'srt', 'mpegts', null, null]);
  expect(trimUrl(' rtmp://h/app// ')).toBe('rtmp://h/app');
});

test('logs name the receiver and no secret', () => {
  expect(receiverOf('srt://h:1?passphrase=secret')).toBe('srt://h:1');
  expect(receiverOf('rtmp://h:1/app/key')).toBe('rtmp://h:1');
});

test('a request stored in the state folder is validated like a request of a client', () => {
  const good = { id: 'a', streamName: 's', trackIds: [1], variantNames: ['v'], protocol: 'rtmp', url: 'rtmp://h/app', streamKey: '' };
  expect(storedPushRequest(good)).toEqual({ ...good, isConfig: false });
  for (const bad of [
    null,
    [],
    { ...good, id: '' },
    { ...good, trackIds: [1.5] },
    { ...good, url: 'http://h' },
    { ...good, protocol: 'x' },
    { ...good, streamKey: 1 },
  ]) {
    expect(storedPushRequest(bad)).toBeNull();
  }
});
