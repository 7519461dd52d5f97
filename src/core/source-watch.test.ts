import { describe, expect, test } from 'vitest';
import type { Packet } from '../media/packet.ts';
import { MILLISECONDS } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import { MAX_BYTES_PER_SECOND, MAX_STANDSTILL_MS, SourceWatch } from './source-watch.ts';

const FRAME = new Uint8Array(1024 * 1024);
const SMALL = new Uint8Array(100);

/** A packet at `dts` ms of its track. */
function packet(dts: number, data: Uint8Array, { id = 0, type = 'video' as Track['type'] } = {}): Packet {
  const track = { id, type, timebase: MILLISECONDS } as Track;
  return { track, pts: dts, dts, duration: 33, keyframe: true, data };
}

/** How many packets pass before the watch objects; null when all do. */
function passed(packets: Iterable<[packet: Packet, now: number]>, watch = new SourceWatch()): number | null {
  let count = 0;
  for (const [next, now] of packets) {
    if (watch.packet(next, now) !== null) return count;
    count += 1;
  }
  return null;
}

describe('the bytes of a second of media', () => {
  test('are bounded while the clock stands still, at any packet rate', () => {
    const packets = Array.from({ length: 200 }, (_, index): [Packet, number] => [packet(index / 90, FRAME), 0]);
    expect(passed(packets)).toBe(MAX_BYTES_PER_SECOND / FRAME.length);
  });

  test('are counted per track: progress of audio does not hide a frozen video track', () => {
    const packets = Array.from({ length: 200 }, (_, index): [Packet, number][] => [
      [packet(0, FRAME), index],
      [packet(index * 500, SMALL, { id: 1, type: 'audio' }), index],
    ]);
    expect(passed(packets.flat())).toBe((2 * MAX_BYTES_PER_SECOND) / FRAME.length);
  });

  test('may stay at the rate of a large stream forever', () => {
    const packets = Array.from({ length: 1200 }, (_, index): [Packet, number] => [packet(index * 20, FRAME), index * 20]);
    expect(passed(packets)).toBeNull();
  });

  test('are bounded for events too', () => {
    const packets = Array.from({ length: 200 }, (): [Packet, number] => [packet(0, FRAME, { type: 'data' }), 0]);
    expect(passed(packets)).toBe(MAX_BYTES_PER_SECOND / FRAME.length);
  });
});

describe('a clock that stands still', () => {
  test('is detected by the monotonic clock', () => {
    const packets = Array.from({ length: 2000 }, (_, index): [Packet, number] => [packet(index / 90, SMALL), index * 40]);
    expect(passed(packets)).toBe(MAX_STANDSTILL_MS / 40);
  });

  test('is distinguished from a slow clock, from a pausing source and from simultaneous events', () => {
    const slow = Array.from({ length: 5000 }, (_, index): [Packet, number] => [packet(index * 2, SMALL), index * 40]);
    expect(passed(slow)).toBeNull();
    const pauses = Array.from({ length: 1000 }, (_, index): [Packet, number] => [packet(index * 100, SMALL), index * 120_000]);
    expect(passed(pauses)).toBeNull();
    const events = Array.from({ length: 1000 }, (_, index): [Packet, number] => [packet(0, SMALL, { type: 'data' }), index * 1000]);
    expect(passed(events)).toBeNull();
  });

  test('is forgotten with its source and its track', () => {
    const watch = new SourceWatch();
    const still = (from: number): Iterable<[Packet, number]> =>
      Array.from({ length: 700 }, (_, index): [Packet, number] => [packet(0, SMALL), from + index * 40]);
    expect(passed(still(0), watch)).toBeNull();
    watch.restart();
    expect(passed(still(28_000), watch)).toBeNull();
    watch.change([{ id: 1 }], 56_000);
    expect(passed(still(56_000), watch)).toBeNull();
    expect(passed(still(84_000), watch)).not.toBeNull();
  });
});

test('sixty changes of parameters pass at once, then one a second', () => {
  const watch = new SourceWatch();
  const changes = (count: number, now: number) =>
    Array.from({ length: count }, () => watch.change([{ id: 0 }], now)).filter((it) => it === null);
  expect(changes(100, 0)).toHaveLength(60);
  expect(changes(100, 10_000)).toHaveLength(10);
  for (let second = 11; second < 600; second += 1) expect(watch.change([{ id: 0 }], second * 1000)).toBeNull();
});

test('a broken track is accepted, a flood of unreadable packets is not', () => {
  const watch = new SourceWatch();
  for (let index = 0; index < 10_000; index += 1) expect(watch.fault('NAL', index * 20)).toBeNull();
  const flood = Array.from({ length: 1000 }, () => watch.fault('NAL: broken', 200_000)).filter((it) => it !== null);
  expect(flood.length).toBeGreaterThanOrEqual(499);
  expect(flood[0]).toBe('more than 100 packets a second cannot be read, the first one: NAL: broken');
});
