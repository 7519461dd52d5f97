import { expect, test } from 'vitest';
import { MAX_PLACES } from './fanout/fanout.ts';
import { PeerPlaces } from './peer-places.ts';

const at = (port: number) => ({ host: '192.0.2.1', port });

test('the oldest address of a session is forgotten first, a reclaimed address last', () => {
  const places = new PeerPlaces<string>();
  for (const session of ['one', 'other', 'one']) places.take(0, at(1), session);
  for (let port = 2; port <= MAX_PLACES; port += 1) expect(places.claim(0, at(port), 'one')).toBe(true);
  expect(places.of(0, at(1))).toBe('one');
  places.take(0, at(MAX_PLACES + 1), 'one');
  expect([1, 2, MAX_PLACES + 1].map((port) => places.of(0, at(port)))).toEqual([undefined, 'one', 'one']);
});

test('an address that answered for another session belongs to that, and stays when the first session ends', () => {
  const places = new PeerPlaces<string>();
  expect([places.claim(0, at(1), 'one'), places.claim(0, at(1), 'other'), places.take(0, at(1), 'other')]).toEqual([true, false, true]);
  places.forget('one');
  expect(places.of(0, at(1))).toBe('other');
  places.forget('other');
  expect(places.of(0, at(1))).toBeUndefined();
});
