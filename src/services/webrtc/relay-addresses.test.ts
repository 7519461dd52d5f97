import { expect, test } from 'vitest';
import { readRelayAddresses } from './relay-addresses.ts';

test('an address of the machine is listened on and announced', () => {
  expect(readRelayAddresses(['127.0.0.1:3478'], ['*'])).toEqual({
    listen: [{ host: '127.0.0.1', port: 3478 }],
    urls: ['turn:127.0.0.1:3478?transport=tcp'],
  });
});

test('"*" means all addresses the server is bound to', () => {
  expect(readRelayAddresses(['*:3478'], ['127.0.0.1'])).toEqual({
    listen: [{ host: '127.0.0.1', port: 3478 }],
    urls: ['turn:127.0.0.1:3478?transport=tcp'],
  });
});

test('a host name and a foreign address are announced unchanged', () => {
  expect(readRelayAddresses(['relay.example.com:443', '203.0.113.9:443', '[2001:db8::1]:443'], ['*'])).toEqual({
    listen: [
      { host: '0.0.0.0', port: 443 },
      { host: '::', port: 443 },
    ],
    urls: ['turn:relay.example.com:443?transport=tcp', 'turn:203.0.113.9:443?transport=tcp', 'turn:[2001:db8::1]:443?transport=tcp'],
  });
});

test('a server on all of IPv6 opens the relay there, too', () => {
  const places = (host: string) => [
    { host: '0.0.0.0', port: 443 },
    { host, port: 443 },
  ];
  expect(readRelayAddresses(['relay.example.com:443'], ['*', '::']).listen).toEqual(places('::'));
  expect(readRelayAddresses(['*:443'], ['::']).listen).toEqual(places('::'));
  expect(readRelayAddresses(['192.0.2.1:80'], ['::'], '*:443').listen).toEqual(places('::'));
});

test('TcpRelayBind replaces the address to listen on', () => {
  expect(readRelayAddresses(['relay.example.com:443'], ['*'], '127.0.0.1:3478')).toEqual({
    listen: [{ host: '127.0.0.1', port: 3478 }],
    urls: ['turn:relay.example.com:443?transport=tcp'],
  });
  expect(readRelayAddresses([], ['*'], '127.0.0.1:3478')).toEqual({ listen: [], urls: [] });
});

test.each([
  [['relay.example.com'], undefined],
  [['*:0'], undefined],
  [['*:70000'], undefined],
  [['*:3478/udp'], undefined],
  [['*:3478'], 'host.example:1'],
])('%j bound to %s is refused with the reason', (entries, bindTo) => {
  expect(() => readRelayAddresses(entries, ['*'], bindTo)).toThrow(/^'.*' is not <ip>:<port>$|is not an IP address$/);
});
