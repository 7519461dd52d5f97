import { describe, expect, it } from 'vitest';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  interleave,
  videoPackets,
  videoTrack,
} from '../../../../../test/fakes/synthetic-media.ts';
import { AVCC } from '../../../../../test/fixtures/bitstreams.ts';
import { joinNalUnits } from '../../../../codecs/nal/convert.ts';
import type { Span } from '../../../../delivery/feed/messages.ts';
import { SlotSchedule } from './slot-schedule.ts';
import { type FinishedSegment, TsSegmenter } from './ts-segmenter.ts';

const TARGET_MS = 2000;
/** A frame of 50 kB in one NAL unit. */
const FRAME = joinNalUnits([new Uint8Array(50_000).fill(0x41)]);

/** Segments of a synthetic video, stored in one endless block. */
function segment(options: { readonly rate: number; readonly gop: number; readonly seconds: number }): {
  segments: FinishedSegment[];
  pieces: number[];
} {
  const track = videoTrack({ config: AVCC.main1080 });
  const segments: FinishedSegment[] = [];
  const pieces: number[] = [];
  let used = 0;
  const store = (chunks: readonly Uint8Array[]): readonly Span[] =>
    chunks.map(({ length }) => {
      const offset = used;
      used += length;
      pieces.push(length);
      return { block: 1, offset, length };
    });
  const segmenter = new TsSegmenter({
    variant: { id: '1', video: track, audios: [], data: null },
    leads: true,
    schedule: new SlotSchedule(TARGET_MS),
    sink: { store, finished: (_variant, made) => void segments.push(made) },
  });
  for (const packet of videoPackets(track, constantFrames(options))) segmenter.push({ ...packet, data: FRAME });
  segmenter.finish();
  segmenter.finish();
  return { segments, pieces };
}

describe('TsSegmenter', () => {
  it('passes bytes on in pieces and names them as one span', () => {
    const { segments, pieces } = segment({ rate: 25, gop: 50, seconds: 6 });
    expect(segments.map(({ number, start, duration }) => [number, start, duration])).toEqual([
      [0, 0, 2],
      [1, 2000, 2],
      [2, 4000, 2],
    ]);
    for (const { spans } of segments) expect(spans).toHaveLength(1);
    expect(pieces.length).toBeGreaterThan(3 * segments.length);
    expect(Math.max(...pieces)).toBeLessThan(300_000);
  });

  it('ends segments after 128 MiB when the clock stands still, even without a keyframe', () => {
    const track = videoTrack({ config: AVCC.main1080 });
    const sizes: number[] = [];
    const segmenter = new TsSegmenter({
      variant: { id: '1', video: track, audios: [], data: null },
      leads: true,
      schedule: new SlotSchedule(TARGET_MS),
      sink: {
        store: (chunks) => chunks.map(({ length }) => ({ block: 1, offset: 0, length })),
        finished: (_variant, { spans }) => void sizes.push(spans.reduce((sum, { length }) => sum + length, 0)),
      },
    });
    const [first] = videoPackets(track, constantFrames({ rate: 25, gop: 50, seconds: 1 }));
    if (first === undefined) throw new Error('no packet');
    const data = joinNalUnits([new Uint8Array(1024 * 1024).fill(0x41)]);
    for (let at = 0; at < 300; at += 1) segmenter.push({ ...first, dts: at, pts: at, keyframe: at === 0, data });
    expect(sizes.map((bytes) => Math.round(bytes / 1024 / 1024))).toEqual([129, 129]);
  });

  it.each([
    { pause: 'a short one', from: 6, to: 8 },
    { pause: 'one of many segments', from: 6.2, to: 26.2 },
    { pause: 'one that does not end', from: 6.2, to: 40 },
  ])('continues with audio while video pauses: $pause', ({ from, to }) => {
    const video = videoTrack();
    const audio = audioTrack();
    const segments: FinishedSegment[] = [];
    const segmenter = new TsSegmenter({
      variant: { id: '1', video, audios: [audio], data: null },
      leads: true,
      schedule: new SlotSchedule(TARGET_MS),
      sink: { store: () => [], finished: (_variant, made) => void segments.push(made) },
    });
    const pictures = videoPackets(video, constantFrames({ rate: 25, gop: 25, seconds: 40 }));
    const left = pictures.filter(({ dts }) => dts < from * 90_000 || dts >= to * 90_000);
    for (const packet of interleave(left, audioPackets(audio, 40))) segmenter.push(packet);
    segmenter.finish();
    // No segment is longer than the target plus the wait before a pause; none overlaps or is missing.
    for (const { duration } of segments) expect(duration).toBeLessThan(TARGET_MS / 1000 + 3.1);
    segments.forEach(({ start, duration }, index) => {
      const next = segments[index + 1];
      if (next !== undefined) expect(start + duration * 1000).toBeCloseTo(next.start, 3);
    });
    const last = segments.at(-1);
    expect((last?.start ?? 0) / 1000 + (last?.duration ?? 0)).toBeGreaterThan(39.8);
  });

  it('ends a segment although no keyframe arrives', () => {
    const { segments } = segment({ rate: 5, gop: 10_000, seconds: 45 });
    expect(segments.map(({ duration }) => duration)).toEqual([20, 20, 5]);
  });
});
