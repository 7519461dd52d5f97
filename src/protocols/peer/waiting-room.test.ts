import { expect, test } from 'vitest';
import { WaitingRoom } from './waiting-room.ts';

function fill(room: WaitingRoom, use: 'play' | 'publish', clients: readonly string[]): object[] {
  return clients.map((client) => {
    const guest = {};
    room.check(use, client);
    room.enter(guest, use, client);
    return guest;
  });
}

test('one address has a share, and gets it back as its sessions connect or end', () => {
  const room = new WaitingRoom();
  const guests = fill(room, 'play', new Array(256).fill('192.0.2.1'));
  expect(() => room.check('play', '192.0.2.1')).toThrow('256 WebRTC sessions of 192.0.2.1 have been opened and are not connected yet');
  expect(() => room.check('publish', '::ffff:192.0.2.1')).toThrow('WebRTC sessions of');
  expect(room.turnedAway).toBe(2);
  room.check('play', '192.0.2.2');
  for (const guest of guests) {
    room.leave(guest);
    room.leave(guest);
  }
  room.check('play', '192.0.2.1');
  expect(room.size).toBe(0);
});

test('the addresses of one IPv6 network share', () => {
  const room = new WaitingRoom();
  fill(
    room,
    'play',
    Array.from({ length: 256 }, (_, n) => `2001:db8:0:1::${n.toString(16)}`),
  );
  expect(() => room.check('play', '2001:db8:0:1:ffff::1')).toThrow('not connected yet');
  room.check('play', '2001:db8:0:2::1');
});

test('players from many addresses do not keep publishers out', () => {
  const room = new WaitingRoom();
  fill(
    room,
    'play',
    Array.from({ length: 2048 }, (_, n) => `10.0.${n >> 8}.${n & 255}`),
  );
  expect(() => room.check('play', '192.0.2.1')).toThrow('2048 WebRTC sessions have been opened and are not connected yet');
  room.check('publish', '192.0.2.1');
});
