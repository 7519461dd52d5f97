/** Audio that comes later than the frames of its time, as an encoder beside bypassed frames makes it. */
import { describe, expect, it } from 'vitest';
import { audioPackets, audioTrack, constantFrames, videoPackets, videoTrack } from '../../../../../test/fakes/synthetic-media.ts';
import { AVCC } from '../../../../../test/fixtures/bitstreams.ts';
import { demuxTs } from '../../../../../test/support/ts-demuxer.ts';
import { joinNalUnits } from '../../../../codecs/nal/convert.ts';
import type { Packet } from '../../../../media/packet.ts';
import { toSeconds } from '../../../../media/timebase.ts';
import { SlotSchedule } from './slot-schedule.ts';
import { TsSegmenter } from './ts-segmenter.ts';

const TARGET_S = 2;
const VIDEO = videoTrack({ config: AVCC.main1080 });
const AUDIO = audioTrack();
const VIDEO_TYPE = 0x1b;
const PICTURE = joinNalUnits([new Uint8Array(500).fill(0x41)]);
/** A frame of AAC. */
const FRAME_S = 1024 / 48_000;

/** Media time, seconds. */
interface Segment {
  readonly start: number;
  /** Times of its video frames. */
  readonly video: readonly number[];
  readonly audio: readonly number[];
  /** The newest frame that had come when it was finished. */
  readonly at: number;
}

const timeOf = ({ dts, track }: Packet): number => toSeconds(dts, track.timebase);

/** `lag`: delay of the audio after the frames of the same time, seconds; infinite: no audio comes. */
function segment(seconds: number, lag: (time: number) => number): { segments: Segment[]; faults: readonly string[] } {
  const stored: Uint8Array[] = [];
  const segments: Segment[] = [];
  let at = 0;
  const bytesOf = (spans: readonly { readonly block: number }[]): Buffer =>
    Buffer.concat(spans.map(({ block }) => stored[block] as Uint8Array));
  const segmenter = new TsSegmenter({
    variant: { id: '1', video: VIDEO, audios: [AUDIO], data: null },
    leads: true,
    schedule: new SlotSchedule(TARGET_S * 1000),
    sink: {
      store: (chunks) => [
        { block: stored.push(Buffer.concat(chunks)) - 1, offset: 0, length: chunks.reduce((sum, { length }) => sum + length, 0) },
      ],
      finished: (_variant, { start, spans }) => {
        const { streams } = demuxTs(bytesOf(spans));
        const times = (isVideo: boolean): number[] =>
          streams
            .filter(({ streamType }) => (streamType === VIDEO_TYPE) === isVideo)
            .flatMap(({ pes }) => pes.map(({ pts }) => pts / 90_000));
        segments.push({ start: start / 1000, video: times(true), audio: times(false), at });
      },
    },
  });
  const arrivals = [
    ...videoPackets(VIDEO, constantFrames({ rate: 25, gop: 25, seconds })).map((packet) => ({
      packet: { ...packet, data: PICTURE },
      when: timeOf(packet),
    })),
    ...audioPackets(AUDIO, seconds).map((packet) => ({ packet, when: timeOf(packet) + lag(timeOf(packet)) })),
  ].filter(({ when }) => when < seconds);
  for (const { packet, when } of arrivals.toSorted((one, two) => one.when - two.when)) {
    if (packet.track === VIDEO) at = when;
    segmenter.push(packet);
  }
  segmenter.finish();
  return { segments, faults: demuxTs(Buffer.concat(stored)).faults };
}

/** Delay of a segment's first audio after its first frame. */
const offset = ({ video, audio }: Segment): number => (audio[0] ?? Number.POSITIVE_INFINITY) - (video[0] ?? 0);

describe('a segment', () => {
  it.each([0, 0.3, 1.7, 2.9])('has the audio of its frames when it arrives %d s after them', (lag) => {
    const { segments, faults } = segment(20, () => lag);
    const starts = segments.map(({ start }) => start);
    expect(starts).toEqual(starts.map((_start, n) => n * TARGET_S));
    expect(starts.length).toBe(10);
    expect(faults).toEqual([]);
    for (const { start, video, audio, at } of segments.slice(0, -1 - Math.ceil(lag / TARGET_S))) {
      expect(video.length).toBe(25 * TARGET_S);
      expect(Math.abs(offset({ start, video, audio, at }))).toBeLessThan(FRAME_S);
      expect(audio.length).toBeGreaterThanOrEqual(Math.floor(TARGET_S / FRAME_S));
      // The segment waits for the lag and no longer.
      expect(at).toBeLessThan(start + TARGET_S + lag + 0.1);
    }
  });

  it('has the audio of its frames even while the audio catches up slowly', () => {
    const { segments } = segment(20, (time) => Math.max(0, 2.9 - time / 3));
    for (const one of segments.slice(0, -1)) expect(Math.abs(offset(one))).toBeLessThan(FRAME_S);
  });

  it('waits three seconds for audio that has stopped, and later segments do not wait', () => {
    const { segments } = segment(20, (time) => (time < 5 ? 0 : Number.POSITIVE_INFINITY));
    expect(segments.map(({ start }) => start)).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
    const waits = segments.slice(0, -1).map(({ start, at }) => Math.round(at - start - TARGET_S));
    expect(waits).toEqual([0, 0, 3, 1, 0, 0, 0, 0, 0]);
    for (const { video } of segments) expect(video.length).toBe(25 * TARGET_S);
  });

  it('waits for audio again when it returns', () => {
    const { segments } = segment(30, (time) => (time >= 5 && time < 14 ? Number.POSITIVE_INFINITY : 0.5));
    const back = segments.slice(9, -1);
    expect(back.length).toBe(5);
    for (const { start, at } of back) expect(Math.abs(at - start - TARGET_S - 0.5)).toBeLessThan(0.1);
    for (const one of back) expect(Math.abs(offset(one))).toBeLessThan(FRAME_S);
  });
});
