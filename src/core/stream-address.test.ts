import { expect, test } from 'vitest';
import { addressOf, applicationKey, streamKey, streamText } from './stream-address.ts';

test('every stream has a key of its own, whatever its names hold', () => {
  const names = ['', 'a', 'a/b', 'b', '/', '"', '","', '\n'];
  const addresses = names.flatMap((vhost) => names.flatMap((app) => names.map((stream) => ({ vhost, app, stream }))));
  expect(new Set(addresses.map(streamKey)).size).toBe(names.length ** 3);
  expect(new Set(addresses.map(applicationKey)).size).toBe(names.length ** 2);
});

test('what has a name in an application has the address of that name', () => {
  const address = addressOf({ vhost: 'v', app: 'a', name: 's' });
  expect(address).toEqual({ vhost: 'v', app: 'a', stream: 's' });
  expect(streamText(address)).toBe('v/a/s');
});
