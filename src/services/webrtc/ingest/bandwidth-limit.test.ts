import { expect, test } from 'vitest';
import { BandwidthLimit } from './bandwidth-limit.ts';

/** A publisher that sends this many packets of 1250 bytes (10,000 bits) each second, some of which are lost. */
function publisher(): (received: number, lost: number) => number {
  const limit = new BandwidthLimit();
  const packets = { received: 0, lost: 0 };
  return (received, lost) => {
    for (let n = 0; n < received; n += 1) limit.received(1250);
    packets.received += received;
    packets.lost += lost;
    return Math.round(limit.evaluate(1000, { ...packets }));
  };
}

test('starts at 3 Mbit/s, and grows to twice the received bitrate', () => {
  const second = publisher();
  expect([second(0, 0), second(50, 0)]).toEqual([3_000_000, 3_000_000]);
  expect([second(400, 0), second(400, 7)]).toEqual([3_240_000, 3_499_200]);
  for (let n = 0; n < 20; n += 1) second(400, 0);
  expect(second(400, 0)).toBe(8_000_000);
});

test('few losses stop its growth, many losses lower it below the received bitrate', () => {
  const second = publisher();
  expect(second(380, 20)).toBe(3_000_000);
  expect(second(160, 40)).toBe(1_440_000);
  expect(second(160, 0)).toBe(1_555_200);
});

test('it has bounds', () => {
  const [small, large] = [publisher(), publisher()];
  expect(small(1, 9)).toBe(150_000);
  for (let n = 0; n < 60; n += 1) large(5000, 0);
  expect(large(5000, 0)).toBe(50_000_000);
});
