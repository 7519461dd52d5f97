import { expect, test } from 'vitest';
import { videoPackets, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import type { Packet } from '../../media/packet.ts';
import { MapHold } from './map-hold.ts';

const TRACK = videoTrack();
const packets = (count: number, size = 1): Packet[] =>
  videoPackets(
    TRACK,
    Array.from({ length: count }, (_, n) => ({ seconds: n / 25, keyframe: false })),
    size,
  );

test('holds packets only while a map is read', () => {
  const hold = new MapHold();
  const [before, during, after] = packets(3) as [Packet, Packet, Packet];
  hold.push(before);
  hold.hold();
  hold.push(during);
  expect(hold.packets).toEqual([during]);
  expect(hold.release()).toBe(0);
  hold.push(after);
  expect(hold.packets).toEqual([]);
  expect(hold.release()).toBe(0);
});

test.each([
  ['500 packets', 500, 1],
  ['16 MiB', 16, 1024 * 1024],
])('holds %s; one more drops and counts all of them', (_what, room, size) => {
  const hold = new MapHold();
  hold.hold();
  for (const packet of packets(room, size)) hold.push(packet);
  expect(hold.packets).toHaveLength(room);
  for (const packet of packets(3, size)) hold.push(packet);
  expect(hold.packets).toEqual([]);
  expect(hold.release()).toBe(room + 3);
  expect(hold.release()).toBe(0);
  hold.hold();
  for (const packet of packets(room, size)) hold.push(packet);
  expect(hold.packets).toHaveLength(room);
});
