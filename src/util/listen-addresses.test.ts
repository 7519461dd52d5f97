import { expect, test } from 'vitest';
import { listenAddresses, ownFamily } from './listen-addresses.ts';

test.each([
  [['*'], ['0.0.0.0']],
  [['::'], ['0.0.0.0', '::']],
  [
    ['*', '::'],
    ['0.0.0.0', '::'],
  ],
  [
    ['::', '*', '0.0.0.0'],
    ['::', '0.0.0.0'],
  ],
  [
    ['::', '192.0.2.1'],
    ['::', '192.0.2.1'],
  ],
  [
    ['::', 'server.example'],
    ['::', 'server.example'],
  ],
  [['::1'], ['::1']],
])('%j listens on %j', (ips, hosts) => {
  expect(listenAddresses(ips)).toEqual(hosts);
});

test('a socket uses only the family of its address', () => {
  expect([ownFamily('::'), ownFamily('0.0.0.0'), ownFamily('server.example')].map(({ ipv6Only }) => ipv6Only)).toEqual([
    true,
    false,
    false,
  ]);
});
