import { expect, test } from 'vitest';
import { addressOwner, plainAddress } from './client-address.ts';

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::ffff:10ff:10.0.0.1', '::ffff:10ff:10.0.0.1'],
  ['::ffff:c000:201', '::ffff:c000:201'],
  ['2001:db8::192.0.2.1', '2001:db8::192.0.2.1'],
])('%s is %s', (host, plain) => {
  expect(plainAddress(host)).toBe(plain);
});

test('an address belongs to itself, or to its network', () => {
  expect(addressOwner('::ffff:192.0.2.1')).toBe('192.0.2.1');
  expect(addressOwner('::ffff:10ff:10.0.0.1')).toBe('0000000000000000/64');
});
