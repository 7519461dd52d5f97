import { describe, expect, it } from 'vitest';
import { FakeDelivery } from '../../../../../test/fakes/fake-delivery.ts';
import { FakeStream } from '../../../../../test/fakes/fake-stream.ts';
import { constantFrames, videoPackets, videoTrack } from '../../../../../test/fakes/synthetic-media.ts';
import { DEFAULT_SETTINGS } from '../../../../../test/validator/llhls-simulation.ts';
import { DvrStorage } from '../../dvr/dvr-storage.ts';
import { LlhlsView } from '../../view/fmp4/llhls-view.ts';
import type { LlhlsViewSettings } from '../../wire/view-settings.ts';
import { CutSchedule } from './cut-schedule.ts';
import { LlhlsStream } from './llhls-stream.ts';
import type { TimedSample } from './sample-timeline.ts';
import { SegmentLimits } from './segment-limits.ts';
import type { CutPart } from './segment-sink.ts';
import { Segmenter } from './segmenter.ts';

const MIB = 1024 * 1024;

/** Cuts `count` frames of `size` bytes whose times differ by one tick of 90 kHz, like those of a stopped clock. */
function cut(count: number, size: number): { parts: number[]; samples: number[]; segments: number[]; left: number } {
  const data = new Uint8Array(size);
  const parts: number[] = [];
  const samples: number[] = [];
  const segments: number[] = [];
  const segmenter = new Segmenter({
    ...{ video: true, chunkDuration: 0.5, timescale: 90_000, jitter: 0 },
    schedule: new CutSchedule(() => 0),
    limits: new SegmentLimits(6, 1.5),
    sink: {
      segmentOpened: () => segments.push(0),
      partTargetChosen: () => undefined,
      partClosed: (part: CutPart) => {
        const bytes = part.samples.reduce((sum, sample) => sum + sample.data.length, 0);
        parts.push(bytes);
        samples.push(part.samples.length);
        segments.push((segments.pop() ?? 0) + bytes);
      },
      segmentClosed: () => undefined,
      gapPassed: () => undefined,
    },
  });
  segmenter.leads = true;
  for (let index = 0; index < count; index += 1) {
    const sample: TimedSample = {
      dts: index,
      duration: 1,
      compositionOffset: 0,
      keyframe: index === 0,
      data,
      mark: undefined,
      time: index / 90,
    };
    segmenter.push(sample);
  }
  return { parts, samples, segments, left: count * size - parts.reduce((sum, bytes) => sum + bytes, 0) };
}

describe('frames with a frozen clock', () => {
  it('leave memory in parts of 16 MiB and segments of 128 MiB', () => {
    const { parts, segments, left } = cut(600, MIB);
    expect(Math.max(...parts)).toBe(16 * MIB);
    expect(Math.max(...segments)).toBe(128 * MIB);
    expect(left).toBeLessThanOrEqual(16 * MIB);
  });

  it('leave it in parts of some thousand when they are tiny', () => {
    const { samples, left } = cut(20_000, 10);
    expect(Math.max(...samples)).toBe(4096);
    expect(left).toBeLessThanOrEqual(4096 * 10);
  });

  it('of the largest size are a part each', () => {
    const { parts } = cut(20, 16 * MIB - 1);
    expect(new Set(parts)).toEqual(new Set([16 * MIB - 1]));
  });
});

describe('segments that exceed the memory of a stream', () => {
  const video = videoTrack();
  const frames = videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 60 }));

  function play(memoryBytes?: number) {
    const delivery = new FakeDelivery((settings, context) => new LlhlsView(settings as LlhlsViewSettings, context));
    const source = new FakeStream();
    const stream = new LlhlsStream({
      ...{ stream: source, delivery, storage: new DvrStorage() },
      settings: { ...DEFAULT_SETTINGS, segmentDuration: 2 },
      ...(memoryBytes !== undefined && { memoryBytes }),
    });
    source.tracks = [video];
    stream.onTracks([video]);
    for (const packet of frames) stream.onPacket(packet);
    const track = stream.model.tracks.get(video.id);
    return { held: delivery.feed.storedBytes, listed: track?.completeCount ?? 0 };
  }

  it('leave the window before the configured count is reached', () => {
    const all = play();
    expect(all.listed).toBe(12);
    const short = play(all.held / 2);
    expect(short.held).toBeLessThan((all.held * 2) / 3);
    expect(short.listed).toBeGreaterThan(3);
    expect(short.listed).toBeLessThan(8);
    expect(play(1).listed).toBe(1);
  });
});

describe('a track that waits for the leading track', () => {
  it('starts without it when 32 MiB of its media wait', () => {
    const first = videoTrack();
    const second = videoTrack({ id: 5 });
    const delivery = new FakeDelivery((settings, context) => new LlhlsView(settings as LlhlsViewSettings, context));
    const source = new FakeStream();
    const stream = new LlhlsStream({ stream: source, delivery, storage: new DvrStorage(), settings: DEFAULT_SETTINGS });
    source.tracks = [first, second];
    stream.onTracks(source.tracks);
    const data = new Uint8Array(MIB);
    const begun = () => (stream.model.tracks.get(second.id)?.segments.length ?? 0) > 0;
    let sent = 0;
    for (const packet of videoPackets(second, constantFrames({ rate: 60, gop: 60, seconds: 2 }))) {
      if (begun()) break;
      stream.onPacket({ ...packet, data });
      sent += 1;
    }
    expect(sent).toBe(32);
  });
});
