import { describe, expect, it } from 'vitest';
import { audioPackets, audioTrack, videoTrack } from '../../../../../test/fakes/synthetic-media.ts';
import { AudioCodec } from '../../../../media/codec.ts';
import { MILLISECONDS } from '../../../../media/timebase.ts';
import { createTimeline } from './sample-timeline.ts';

describe('the timeline of a track', () => {
  it('counts samples of audio whose clock has only milliseconds', () => {
    for (const sampleRate of [48_000, 44_100]) {
      const track = audioTrack({ timebase: MILLISECONDS, sampleRate });
      const timeline = createTimeline(track, 0);
      const samples = audioPackets(track, 10).map((packet) => timeline.place(packet));
      expect(samples.every((sample, index) => sample.dts === index * 1024 && sample.duration === 1024)).toBe(true);
    }
  });

  it('follows a gap', () => {
    const track = audioTrack({ timebase: MILLISECONDS });
    const timeline = createTimeline(track, 0);
    const before = audioPackets(track, 1)
      .map((packet) => timeline.place(packet))
      .at(-1);
    const [after] = audioPackets(track, 1, 3);
    expect(before?.dts).toBe(45 * 1024);
    expect(after === undefined ? 0 : timeline.place(after).dts).toBe(3 * 48_000);
  });

  it('rounds durations of Opus to its frame sizes, and accepts other durations', () => {
    const opus = audioTrack({ codec: AudioCodec.OPUS, timebase: MILLISECONDS, sampleRate: 16_000 });
    const place = (duration: number) =>
      createTimeline(opus, 0).place({ track: opus, pts: 0, dts: 0, duration, keyframe: true, data: new Uint8Array() });
    expect(place(20).duration).toBe(960);
    expect(place(60).duration).toBe(2880);
    expect(place(33).duration).toBe(1584);
    expect(place(0).duration).toBe(960);
  });

  it('keeps the clock of video, a numerator included', () => {
    const track = videoTrack({ timebase: { num: 1001, den: 30_000 } });
    const timeline = createTimeline(track, 1001);
    const sample = timeline.place({ track, pts: 2, dts: 1, duration: 1, keyframe: true, data: new Uint8Array() });
    expect(timeline.timescale).toBe(30_000);
    expect(sample).toMatchObject({ dts: 31 * 1001, duration: 1001, compositionOffset: 1001 });
    expect(sample.time).toBeCloseTo(66.73, 1);
  });

  it('assumes a frame duration until the first packet with a duration', () => {
    const track = videoTrack({ framerateConf: 0 });
    const timeline = createTimeline(track, 0);
    const packet = { track, pts: 0, dts: 0, duration: 0, keyframe: true, data: new Uint8Array() };
    expect(timeline.place(packet).duration).toBe(3000);
    timeline.place({ ...packet, duration: 1800 });
    expect(timeline.place(packet).duration).toBe(1800);
  });
});
