import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { FakeGatekeeper, FakeLease } from '../../../../test/fakes/fake-gatekeeper.ts';
import { foreignPeer } from '../../../../test/fakes/foreign-peer.ts';
import { OPEN } from '../../../access/access-check.ts';
import { admitAsked, askedPlace, targetOf } from './asked-place.ts';
import { requestPlaceOf } from './request-place.ts';

function asked(url: string, host: string, { secure = false, scheme = 'ws' }: { secure?: boolean; scheme?: 'ws' | 'http' } = {}) {
  const request = { url, headers: { host, 'user-agent': 'me/1', authorization: 'Bearer t' } } as unknown as IncomingMessage;
  const place = requestPlaceOf(url, host, (name) => (name === 'nobody' ? undefined : 'default'));
  return askedPlace(place, request, { ...foreignPeer(), asked: { secure, port: 3333 }, realIp: '198.51.100.9' }, scheme);
}

test.each([
  [asked('/app/live?b=%2f&a', 'media.example'), 'ws://media.example:3333/app/live?b=%2f&a'],
  [asked('/app/live', 'media.example:80', { secure: true }), 'wss://media.example:80/app/live'],
  [asked('/app/live?direction=whip', '[2001:db8::1]', { scheme: 'http' }), 'http://[2001:db8::1]:3333/app/live?direction=whip'],
  [asked('/app/live?x', '[2001:db8::1]:99', { scheme: 'http', secure: true }), 'https://[2001:db8::1]:99/app/live?x'],
  [asked('http://other.example/app/live?x', 'media.example'), 'ws://other.example:3333/app/live?x'],
  [asked('/app/live?x=1?signature=2', 'media.example'), 'ws://media.example:3333/app/live?x=1'],
])('access control gets %o as %s', (place, url) => {
  expect(place.url).toBe(url);
});

test('access control is asked for the virtual host of the place, with the client', () => {
  const stay = new FakeLease();
  const access = new FakeGatekeeper(() => stay);
  expect(admitAsked(access, 'outgoing', asked('/app/live', 'media.example'))).toBe(stay);
  expect(access.asked).toEqual([
    {
      place: { host: 'default', vhost: 'default', app: 'app', stream: 'live' },
      request: {
        ...{ direction: 'outgoing', protocol: 'webrtc', url: 'ws://media.example:3333/app/live' },
        client: { address: '192.0.2.1', port: 40_000, realIp: '198.51.100.9', userAgent: 'me/1', authorization: 'Bearer t' },
      },
    },
  ]);
  expect(admitAsked(access, 'outgoing', asked('/app/live', 'nobody'))).toBe(OPEN);
});

test.each([
  ['ws://other.example:3333/b/renamed/master?x=1', { vhost: 'other', app: 'b', stream: 'renamed', playlist: 'master', query: 'x=1' }],
  ['http://other.example/b/re%20named', { vhost: 'other', app: 'b', stream: 're named', playlist: '', query: '' }],
  ['ws://nobody/b/renamed', null],
])('a control server sends it to %s', (newUrl, target) => {
  const virtualHostFor = (host: string): string | undefined => (host === 'other.example' ? 'other' : undefined);
  expect(targetOf(FakeLease.to(newUrl), asked('/app/live', 'media.example').target, virtualHostFor)).toEqual(target);
});

test('the target stays the requested one when no control server redirects it', () => {
  const { target } = asked('/app/live', 'media.example');
  expect(targetOf(new FakeLease(), target, () => 'other')).toBe(target);
});

test.each(['media.example:80/app/other?signature=1?', 'media.example?', 'media.example:80#', 'a b', 'user@media.example'])(
  'the host name %s is refused, which would show another URL to access control',
  (host) => {
    expect(() => asked('/app/live', host)).toThrow('host name');
  },
);
