/** Ends of segments where decoders must be set up anew, and the numbers of discontinuities in all tracks. */
import { describe, expect, it } from 'vitest';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  type FrameTime,
  videoPackets,
  videoTrack,
} from '../../../../../test/fakes/synthetic-media.ts';
import { LlhlsSimulation } from '../../../../../test/validator/llhls-simulation.ts';
import { readBoxes } from '../../../../containers/isobmff/box-reader.ts';
import { readMovieFragment } from '../../../../containers/isobmff/fragment-reader.ts';
import type { Packet } from '../../../../media/packet.ts';
import { toSeconds } from '../../../../media/timebase.ts';

const RATE = 30;

describe('a change of configuration', () => {
  // Some of these times lie just before the beginning of a video segment.
  it.each([9.5, 12.97, 13.97, 14, 14.03, 14.97, 16.97])(
    'has the same discontinuity number in all tracks when the audio changes at %s s',
    (at) => {
      const video = videoTrack();
      const before = audioTrack();
      const after = { ...before, channels: 1, config: Uint8Array.of(0x11, 0x88) };
      // The audio comes late, by less than its frames.
      for (const late of [0, 0.03, 0.2]) {
        const simulation = new LlhlsSimulation([video, before]);
        const sound = audioPackets(before, 40).map((packet) =>
          toSeconds(packet.pts, packet.track.timebase) < at ? packet : { ...packet, track: after },
        );
        const arrives = (packet: Packet): number => toSeconds(packet.dts, packet.track.timebase) + (packet.track === video ? 0 : late);
        const pictures = videoPackets(video, constantFrames({ rate: 30, gop: 30, seconds: 40 }));
        simulation.run([...pictures, ...sound].sort((a, b) => arrives(a) - arrives(b)));
        expect(simulation.problems).toEqual([]);
        const numbers = [0, 1].map((id) =>
          [...(simulation.stream.model.tracks.get(id)?.segments ?? [])].filter(({ discontinuity }) => discontinuity).map(({ msn }) => msn),
        );
        expect(numbers[0]).toHaveLength(1);
        expect(numbers[1]).toEqual(numbers[0]);
      }
    },
  );

  it.each([
    { what: 'a frame that was cut short', from: 19.975 },
    { what: 'a hole', from: 20.06 },
  ])('lists the segments before it up to the first frame after it: $what', ({ from }) => {
    const before = videoTrack();
    const after = videoTrack({ width: 640, height: 360, codecString: 'avc1.64001e' });
    const simulation = new LlhlsSimulation([before]);
    simulation.run([
      ...videoPackets(before, constantFrames({ rate: 25, gop: 50, seconds: 20 })),
      ...videoPackets(after, constantFrames({ rate: 30, gop: 60, seconds: 20, from })),
    ]);
    // A hole is in no part.
    expect(simulation.problems.filter((problem) => !/add up to/.test(problem))).toEqual([]);
    const segments = simulation.watched[0]?.playlist?.segments ?? [];
    const change = segments.findIndex(({ discontinuity }) => discontinuity);
    const listed = segments.slice(0, change).reduce((sum, { duration }) => sum + (duration ?? 0), 0);
    // Players place the next media by the durations, even audio, which continues by itself.
    expect(listed).toBeCloseTo(from, 5);
    expect(((segments[change]?.programDateTime ?? 0) - (segments[0]?.programDateTime ?? 0)) / 1000).toBeCloseTo(from, 2);
  });
});

// Players place the next media behind the last frame (hls.js from 1.7 on) or at the end of decoding (before): both must be its beginning.
describe.each([
  { between: 0, ahead: 0 },
  { between: 1, ahead: 1 },
  { between: 2, ahead: 1 },
  { between: 3, ahead: 2 },
])('$between B-frames that are decoded $ahead frames ahead', ({ between, ahead }) => {
  it.each([301, 303, 305, 307, 309, 311, 313, 315])('end where another configuration starts: %i of them', (count) => {
    const before = videoTrack();
    const after = videoTrack({ width: 640, height: 360, codecString: 'avc1.64001e' });
    const simulation = new LlhlsSimulation([before], { segmentDuration: 1 });
    const begins = count / RATE;
    const follows = constantFrames({ rate: RATE, gop: RATE, seconds: 5, from: begins });
    simulation.run([...videoPackets(before, reordered(count, between, ahead)), ...videoPackets(after, follows)]);
    const samples = samplesOf(simulation);
    const change = samples.findIndex(({ shown }, index) => index > 0 && shown > begins - 0.001);
    const [earlier, later] = [samples.slice(0, change), samples.slice(change)];
    expect(earlier).toHaveLength(count);
    expect(later[0]?.decoded).toBeCloseTo(begins, 4);
    expect(Math.max(...earlier.map(({ shown, lasts }) => shown + lasts))).toBeCloseTo(begins, 4);
    for (const { decoded, shown } of samples) expect(decoded).toBeLessThan(shown + 1e-6);
  });
});

/** `count` frames with `between` B-frames between two reference frames; each is decoded at least `ahead` frames before it is shown. */
function reordered(count: number, between: number, ahead: number): FrameTime[] {
  const order = [0];
  for (let at = 1; at < count; at += between + 1) {
    const reference = Math.min(at + between, count - 1);
    order.push(reference, ...Array.from({ length: reference - at }, (_, index) => at + index));
  }
  return order.map((shown, index) => ({
    seconds: (index - ahead) / RATE,
    keyframe: shown % 30 === 0,
    delay: (shown - index + ahead) / RATE,
  }));
}

/** All samples of the first track in the order of its parts, seconds of the stream. */
function samplesOf({ watched: [track] }: LlhlsSimulation): { readonly decoded: number; readonly shown: number; readonly lasts: number }[] {
  const samples: { decoded: number; shown: number; lasts: number }[] = [];
  for (const bytes of track?.parts.values() ?? []) {
    const moof = readBoxes(bytes).find(({ type }) => type === 'moof');
    if (moof === undefined || track === undefined) continue;
    let at = 0;
    const { timescale } = track;
    readMovieFragment(moof.body, {
      run: (_id, base) => {
        at = base;
      },
      sample: (_size, duration, composition) => {
        samples.push({ decoded: at / timescale, shown: (at + composition) / timescale, lasts: duration / timescale });
        at += duration;
      },
    });
  }
  // Media decoded before time 0 moves everything up.
  const first = Math.min(...samples.map(({ shown }) => shown));
  return samples.map(({ decoded, shown, lasts }) => ({ decoded: decoded - first, shown: shown - first, lasts }));
}

it('parts of the segment after a shortened frame sum up to the duration of the segment', () => {
  const track = videoTrack();
  const frames = (seconds: number, from: number) => constantFrames({ rate: 30, gop: 60, seconds, from });
  const simulation = new LlhlsSimulation([track], { segmentDuration: 2 });
  simulation.run(videoPackets(track, [...frames(12, 0), ...frames(5, 11.979)]));
  const segments = simulation.watched[0]?.playlist?.segments ?? [];
  const behind = segments.find(({ msn }) => msn === 6);
  expect(behind?.duration).toBe(2);
  expect(behind?.parts.reduce((sum, { duration }) => sum + duration, 0)).toBeCloseTo(2, 6);
});
