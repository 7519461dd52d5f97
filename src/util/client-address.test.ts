import { expect, test } from 'vitest';
import { addressOwner, hostPort, plainAddress } from './client-address.ts';

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::ffff:10ff:10.0.0.1', '::ffff:10ff:10.0.0.1'],
  ['::ffff:c000:201', '::ffff:c000:201'],
  ['2001:db8::192.0.2.1', '2001:db8::192.0.2.1'],
  ['::1', '::1'],
])('%s is %s', (host, plain) => {
  expect(plainAddress(host)).toBe(plain);
});

test('an address belongs to itself, or to its network', () => {
  expect(addressOwner('::ffff:192.0.2.1')).toBe('192.0.2.1');
  expect(addressOwner('::ffff:10ff:10.0.0.1')).toBe('0000000000000000/64');
});

test.each([
  { address: '203.0.113.7', text: '203.0.113.7:5' },
  { address: '::ffff:203.0.113.7', text: '203.0.113.7:5' },
  { address: '2001:db8::1', text: '[2001:db8::1]:5' },
  { address: '', text: ':5' },
])('writes a port after $address', ({ address, text }) => {
  expect(hostPort(plainAddress(address), 5)).toBe(text);
});
