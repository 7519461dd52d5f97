import type { NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { outsideAddresses } from './own-addresses.ts';

function entry(address: string, internal = false): NetworkInterfaceInfo {
  const rest = { address, netmask: '', mac: '', internal, cidr: null };
  return address.includes(':') ? { ...rest, family: 'IPv6', scopeid: 0 } : { ...rest, family: 'IPv4' };
}

const MACHINE: ReturnType<typeof networkInterfaces> = {
  lo: [entry('127.0.0.1', true), entry('::1', true)],
  eth0: [entry('192.0.2.7'), entry('2001:db8::7'), entry('fe80::7')],
  eth1: [entry('10.0.0.7'), entry('169.254.1.7')],
  docker0: [entry('172.17.0.1')],
};

test.each([
  [['*'], ['192.0.2.7', '10.0.0.7']],
  [['::'], ['192.0.2.7', '2001:db8::7', '10.0.0.7']],
  [
    ['*', '::'],
    ['192.0.2.7', '2001:db8::7', '10.0.0.7'],
  ],
  [['192.0.2.7', '::'], ['2001:db8::7']],
  [['192.0.2.7'], []],
])('a server on %j is reached at %j', (ips, addresses) => {
  expect(outsideAddresses(ips, MACHINE)).toEqual(addresses);
});

test('a machine without a network has none', () => {
  expect([outsideAddresses(['*'], { lo: MACHINE['lo'] }), outsideAddresses(['*'], {})]).toEqual([[], []]);
});
