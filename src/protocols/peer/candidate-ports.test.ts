import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { readCandidatePorts } from './candidate-ports.ts';

test('a range of ports on the addresses of the server', () => {
  expect(readCandidatePorts(['*:10000-10001/udp'], ['127.0.0.1'])).toEqual([
    { host: '127.0.0.1', port: 10_000, addresses: ['127.0.0.1'] },
    { host: '127.0.0.1', port: 10_001, addresses: ['127.0.0.1'] },
  ]);
});

test('an address of somebody else is told to peers, and the port opened everywhere', () => {
  expect(readCandidatePorts(['203.0.113.9:5000/udp', '[2001:db8::1]:5000/udp'], ['*'])).toEqual([
    { host: '0.0.0.0', port: 5000, addresses: ['203.0.113.9'] },
    { host: '::', port: 5000, addresses: ['2001:db8::1'] },
  ]);
  expect(readCandidatePorts(['127.0.0.1:5000'], ['*'])).toEqual([{ host: '127.0.0.1', port: 5000, addresses: ['127.0.0.1'] }]);
});

test('a star means all addresses of the machine, and entries for one port are joined', () => {
  const [group, ...others] = readCandidatePorts(['*:10000/udp', '203.0.113.9:10000/udp'], ['*']);
  expect(others).toEqual([]);
  expect(group).toMatchObject({ host: '0.0.0.0', port: 10_000 });
  expect(group?.addresses.length).toBeGreaterThan(1);
  expect(group?.addresses).toContain('203.0.113.9');
});

test('link-local addresses are told only where that is wanted', () => {
  const own = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ family, internal }) => family === 'IPv6' && !internal)
    .map(({ address }) => address);
  const told = (linkLocal: boolean): readonly string[] => readCandidatePorts(['[::]:10000/udp'], ['*'], linkLocal)[0]?.addresses ?? [];
  const shown = (local: boolean): string[] =>
    own.some((one) => local || !one.startsWith('fe80')) ? own.filter((one) => local || !one.startsWith('fe80')) : ['::1'];
  expect(told(false)).toEqual(shown(false));
  expect(told(true)).toEqual(shown(true));
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
