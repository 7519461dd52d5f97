import type { NetworkInterfaceInfo } from 'node:os';
import { afterEach, expect, test, vi } from 'vitest';
import { readCandidatePorts, withOutside } from './candidate-ports.ts';

/** Interfaces in place of this machine's. */
const machine = vi.hoisted(() => ({ interfaces: null as Record<string, NetworkInterfaceInfo[]> | null }));
vi.mock('node:os', async (importOriginal) => {
  const original = await importOriginal<typeof import('node:os')>();
  return { ...original, networkInterfaces: () => machine.interfaces ?? original.networkInterfaces() };
});

afterEach(() => {
  machine.interfaces = null;
});

test('a range of ports on the addresses of the server', () => {
  expect(readCandidatePorts(['*:10000-10001/udp'], ['127.0.0.1'])).toEqual([
    { host: '127.0.0.1', port: 10_000, addresses: ['127.0.0.1'] },
    { host: '127.0.0.1', port: 10_001, addresses: ['127.0.0.1'] },
  ]);
});

test('a foreign address is announced to peers, and its port is opened on all interfaces', () => {
  expect(readCandidatePorts(['203.0.113.9:5000/udp', '[2001:db8::1]:5000/udp'], ['*'])).toEqual([
    { host: '0.0.0.0', port: 5000, addresses: ['203.0.113.9'] },
    { host: '::', port: 5000, addresses: ['2001:db8::1'] },
  ]);
  expect(readCandidatePorts(['127.0.0.1:5000'], ['*'])).toEqual([{ host: '127.0.0.1', port: 5000, addresses: ['127.0.0.1'] }]);
});

test('"*" means all addresses of the machine, and entries for one port are merged', () => {
  const [group, ...others] = readCandidatePorts(['*:10000/udp', '203.0.113.9:10000/udp'], ['*']);
  expect(others).toEqual([]);
  expect(group).toMatchObject({ host: '0.0.0.0', port: 10_000 });
  expect(group?.addresses.length).toBeGreaterThan(1);
  expect(group?.addresses).toContain('203.0.113.9');
});

test.each([
  [['*'], ['0.0.0.0']],
  [
    ['*', '::'],
    ['0.0.0.0', '::'],
  ],
  [['::'], ['0.0.0.0', '::']],
  [
    ['::', '127.0.0.1'],
    ['127.0.0.1', '::'],
  ],
  [['::1'], ['::1']],
  [['server.example'], ['0.0.0.0']],
])('"*" on %j opens the port on %j', (bindAddresses, hosts) => {
  expect(readCandidatePorts(['*:10000/udp'], bindAddresses).map(({ host }) => host)).toEqual(hosts);
});

test.each([
  ['*:10000/udp', ['*'], '203.0.113.9:10000/udp'],
  ['10000-10004', ['0.0.0.0'], '203.0.113.9:10000-10004'],
  ['3478', [], '203.0.113.9:3478'],
  ['*:3478/tcp', ['*', '127.0.0.1'], '203.0.113.9:3478/tcp'],
  ['*:10000/udp', ['127.0.0.1'], null],
  ['*:10000/udp', ['::'], '203.0.113.9:10000/udp'],
  ['*:10000/udp', ['::1'], null],
  ['192.0.2.1:10000/udp', ['*'], null],
  ['[::]:10000/udp', ['*'], null],
  ['relay.example.com:3478', ['*'], null],
])('%s on %j is announced with the public address as %s', (entry, bindAddresses, meant) => {
  expect(withOutside(entry, '203.0.113.9', bindAddresses)).toEqual([entry, ...(meant === null ? [] : [meant])]);
});

test('a public address of IPv6 is written as such', () => {
  expect(withOutside('*:10000/udp', '2001:db8::9', ['*'])).toEqual(['*:10000/udp', '[2001:db8::9]:10000/udp']);
});

test('link-local addresses are announced only when the setting asks for them', () => {
  const address = (text: string, internal = false): NetworkInterfaceInfo => {
    return { family: 'IPv6', address: text, internal, netmask: '', mac: '', cidr: null, scopeid: 0 };
  };
  const told = (linkLocal: boolean): readonly string[] | undefined =>
    readCandidatePorts(['[::]:10000/udp'], ['*'], linkLocal)[0]?.addresses;
  machine.interfaces = { lo: [address('::1', true)], eth0: [address('fe80::2')] };
  expect([told(false), told(true)]).toEqual([['::1'], ['fe80::2']]);
  machine.interfaces['eth1'] = [address('2001:db8::3'), address('fe80::3')];
  expect([told(false), told(true)]).toEqual([['2001:db8::3'], ['fe80::2', '2001:db8::3', 'fe80::3']]);
});

test.each([
  ['nonsense', 'is not <ip>:<ports>/udp'],
  ['*:10000/tcp', 'media ports are UDP'],
  ['*:10/udp/x', 'is not'],
  ['*:2000-1000/udp', 'no range of ports'],
  ['*:70000/udp', 'no range of ports'],
  ['*:1-60000/udp', 'no range of ports'],
  ['host.example:10000/udp', 'not an IP address'],
])('%s is refused: %s', (entry, reason) => {
  expect(() => readCandidatePorts([entry], ['*'])).toThrow(reason);
});
