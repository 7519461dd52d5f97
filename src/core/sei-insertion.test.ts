import { expect, it } from 'vitest';
import { accessUnit } from '../../test/fakes/source.ts';
import { dataTrack, videoTrack } from '../../test/fakes/synthetic-media.ts';
import type { Packet } from '../media/packet.ts';
import { MILLISECONDS } from '../media/timebase.ts';
import { SeiInsertion } from './sei-insertion.ts';

const video = videoTrack();
const data = { ...dataTrack(2), timebase: MILLISECONDS };
const event = (pts: number, text = 'x'): Packet => ({
  ...{ track: data, pts, dts: pts, duration: 0, keyframe: true, data: Buffer.alloc(16 + text.length, text) },
  event: { format: 'sei', target: 'video' },
});
const frame = (ms: number): Packet => ({
  ...{ track: video, pts: ms * 90, dts: ms * 90, duration: 3000, keyframe: false, data: accessUnit(false) },
});

it('keeps a message for the frame of its time', () => {
  const insertion = new SeiInsertion();
  insertion.add(event(1000), [video]);
  for (const ms of [0, 500, 960]) expect(insertion.apply(frame(ms)).data).toEqual(frame(ms).data);
  expect(insertion.apply(frame(1000)).data.length).toBeGreaterThan(frame(1000).data.length);
  expect(insertion.size).toBe(0);
});

it('keeps at most the 32 newest for a track without frames', () => {
  const insertion = new SeiInsertion();
  const plain = frame(1000).data.length;
  insertion.add(event(0), [video]);
  const one = insertion.apply(frame(1000)).data.length - plain;
  for (let count = 0; count < 100; count += 1) insertion.add(event(0), [video]);
  expect(insertion.apply(frame(1000)).data.length - plain).toBe(32 * one);
});

it('leaves frames of other codecs unchanged', () => {
  const insertion = new SeiInsertion();
  insertion.add(event(0), [videoTrack({ codec: 'VP8' }), videoTrack({ id: 1, codec: 'AV1' })]);
  expect(insertion.size).toBe(0);
  insertion.add(event(0), [videoTrack({ id: 1, codec: 'VP8' }), video]);
  expect(insertion.size).toBe(1);
});
