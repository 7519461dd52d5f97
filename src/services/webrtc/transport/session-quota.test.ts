import { expect, test } from 'vitest';
import { SessionQuota } from './session-quota.ts';

function fill(quota: SessionQuota, use: 'play' | 'publish', clients: readonly string[]): object[] {
  return clients.map((client) => {
    const guest = {};
    quota.check(use, client);
    quota.enter(guest, use, client);
    return guest;
  });
}

test('an address has a share, which frees up as its sessions connect or end', () => {
  const quota = new SessionQuota();
  const guests = fill(quota, 'play', new Array(256).fill('192.0.2.1'));
  expect(() => quota.check('play', '192.0.2.1')).toThrow('256 WebRTC sessions of this address have been opened and are not connected yet');
  expect(() => quota.check('publish', '::ffff:192.0.2.1')).toThrow('WebRTC sessions of');
  expect(quota.turnedAway).toBe(2);
  quota.check('play', '192.0.2.2');
  for (const guest of guests) {
    quota.leave(guest);
    quota.leave(guest);
  }
  quota.check('play', '192.0.2.1');
  expect(quota.size).toBe(0);
});

test('the addresses of one IPv6 network share a quota', () => {
  const quota = new SessionQuota();
  fill(
    quota,
    'play',
    Array.from({ length: 256 }, (_, n) => `2001:db8:0:1::${n.toString(16)}`),
  );
  expect(() => quota.check('play', '2001:db8:0:1:ffff::1')).toThrow('not connected yet');
  quota.check('play', '2001:db8:0:2::1');
});

test('players from many addresses do not keep publishers out', () => {
  const quota = new SessionQuota();
  fill(
    quota,
    'play',
    Array.from({ length: 2048 }, (_, n) => `10.0.${n >> 8}.${n & 255}`),
  );
  expect(() => quota.check('play', '192.0.2.1')).toThrow('2048 WebRTC sessions have been opened and are not connected yet');
  quota.check('publish', '192.0.2.1');
});

test('connected sessions count when limits for players and publishers are set', () => {
  const quota = new SessionQuota({ waiting: 2, play: 3, publish: 1 });
  for (let n = 0; n < 3; n += 1) {
    const [player = {}] = fill(quota, 'play', ['192.0.2.1']);
    quota.settle(player);
    quota.settle(player);
  }
  expect(quota.size).toBe(0);
  expect(() => quota.check('play', '192.0.2.1')).toThrow('3 WebRTC sessions of this address are open already');
  const [publisher = {}] = fill(quota, 'publish', ['192.0.2.1']);
  expect(() => quota.check('publish', '192.0.2.1')).toThrow('1 WebRTC sessions of this address are open already');
  quota.check('play', '192.0.2.2');
  quota.leave(publisher);
  quota.leave(publisher);
  quota.check('publish', '192.0.2.1');
  expect(quota.size).toBe(0);
});
