import { expect, test } from 'vitest';
import { videoTrack } from '../../../../test/fakes/synthetic-media.ts';
import type { Fanout, PacketizedFrame } from '../transport/fanout/fanout.ts';
import { MediaSource } from './media-source.ts';

test('times wrap with the 32 bits of RTP, after half a day of frames', () => {
  const frames: PacketizedFrame[] = [];
  const fanout = {
    openSource: () => 1,
    push: (_source: number, frame: PacketizedFrame) => frames.push(frame) > 0,
  } as Partial<Fanout> as Fanout;
  const track = videoTrack({ config: null });
  const source = new MediaSource({ fanout, track, epochMs: 0, fec: false, onRefused: () => undefined });
  const data = Buffer.from([0, 0, 0, 2, 0x65, 0x88]);
  for (const pts of [2 ** 32 - 3000, 2 ** 32, 2 ** 33 + 6000, -3000]) {
    source.push({ track, pts, dts: pts, duration: 3000, keyframe: true, data });
  }
  expect(frames.map(({ timestamp }) => timestamp)).toEqual([2 ** 32 - 3000, 0, 6000, 2 ** 32 - 3000]);
});
