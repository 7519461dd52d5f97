/** Playlists while a source pauses, wholly or with one of its tracks. */
import { describe, expect, it } from 'vitest';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  interleave,
  videoPackets,
  videoTrack,
} from '../../../../../test/fakes/synthetic-media.ts';
import type { ListedSegment } from '../../../../../test/support/playlist/media-playlist.ts';
import { LlhlsSimulation } from '../../../../../test/validator/llhls-simulation.ts';
import type { Packet } from '../../../../media/packet.ts';
import { toSeconds } from '../../../../media/timebase.ts';

const video = videoTrack();
const audio = audioTrack();
const SEGMENT = 2;

const pictures = videoPackets(video, constantFrames({ rate: 25, gop: 50, seconds: 40 }));
const sound = audioPackets(audio, 40);

/** Leaves out the media from `from` to `to` seconds. */
function without(packets: readonly Packet[], from: number, to: number): Packet[] {
  return packets.filter(({ dts, track }) => {
    const seconds = toSeconds(dts, track.timebase);
    return seconds < from || seconds >= to;
  });
}

function run(packets: readonly Packet[]): LlhlsSimulation {
  const simulation = new LlhlsSimulation([video, audio], { segmentDuration: SEGMENT });
  simulation.run(packets);
  return simulation;
}

function segments(simulation: LlhlsSimulation, id: number): readonly ListedSegment[] {
  return simulation.watched.find((track) => track.id === id)?.playlist?.segments ?? [];
}

/** Distances between video and audio segments of the same number, seconds. */
function distances(simulation: LlhlsSimulation): number[] {
  const starts = new Map(segments(simulation, audio.id).map((segment) => [segment.msn, segment.programDateTime ?? 0]));
  return segments(simulation, video.id).flatMap(({ msn, programDateTime }) => {
    const other = starts.get(msn);
    return other === undefined || programDateTime === null ? [] : [(other - programDateTime) / 1000];
  });
}

/** Problems other than the rules that a segment cut short by a pause must break. */
function problems(simulation: LlhlsSimulation): string[] {
  return simulation.problems.filter((problem) => !/add up to|begins [\d.]+ s later/.test(problem));
}

describe('a pause', () => {
  it.each([
    { name: 'between two groups of frames', from: 16, to: 21 },
    { name: 'within a group of frames', from: 15.3, to: 20.3 },
    { name: 'for longer than the playlist', from: 12, to: 30 },
  ])('of the frames is listed as a gap and leaves the audio in step: $name', ({ from, to }) => {
    const simulation = run(interleave(without(pictures, from, to), sound));
    expect(problems(simulation)).toEqual([]);
    const listed = segments(simulation, video.id);
    const gaps = listed.filter(({ gap }) => gap);
    if (to < 25) expect(gaps.length).toBeGreaterThanOrEqual(2);
    for (const { duration, parts } of gaps) {
      expect(parts).toEqual([]);
      expect(duration).toBeLessThanOrEqual(SEGMENT + 0.5);
    }
    // Numbers mean the same time again, and playlists have not lost any.
    for (const distance of distances(simulation).slice(-3)) expect(Math.abs(distance)).toBeLessThan(0.03);
    const total = listed.filter(({ duration }) => duration !== null).reduce((sum, { duration }) => sum + (duration ?? 0), 0);
    const [first, last] = [listed[0]?.programDateTime ?? 0, listed.findLast(({ duration }) => duration === null)?.programDateTime];
    if (last !== undefined && last !== null) expect(Math.abs((last - first) / 1000 - total)).toBeLessThan(1.1);
    // Players cannot begin in the middle of a group of frames.
    listed.forEach(({ parts }, index) => {
      if (listed[index - 1]?.gap === true && parts.length > 0) expect(parts[0]?.independent).toBe(true);
    });
    // Audio does not wait for cuts that will not come: all of it but the last part is listed.
    const ends = segments(simulation, audio.id).at(-1)?.programDateTime ?? 0;
    expect(Math.abs(ends - (listed.at(-1)?.programDateTime ?? 0))).toBeLessThan(30);
  });

  it.each([
    { name: 'pictures', away: video.id, packets: interleave(without(pictures, 15.3, 40), sound) },
    { name: 'sound', away: audio.id, packets: interleave(pictures, without(sound, 15.3, 40)) },
  ])('without an end is listed as gaps too, so that blocking reloads are answered: of the $name', ({ away, packets }) => {
    const simulation = run(packets);
    expect(problems(simulation)).toEqual([]);
    const listed = segments(simulation, away);
    const other = segments(simulation, away === video.id ? audio.id : video.id);
    expect(listed.filter(({ gap }) => gap).length).toBeGreaterThanOrEqual(4);
    // The last finished segment of the others is the second to last: the gaps must reach that far.
    expect(listed.at(-1)?.msn).toBeGreaterThanOrEqual((other.at(-1)?.msn ?? 0) - 2);
    for (const distance of distances(simulation)) expect(Math.abs(distance)).toBeLessThan(SEGMENT);
    const waiting = simulation.delivery.request(
      `${simulation.watched.find(({ id }) => id === away)?.uri}&_HLS_msn=${listed.at(-1)?.msn}&_HLS_part=0`,
    );
    expect(waiting?.response?.status).toBe(200);
  });

  it.each([15, 15.3, 15.96])('without an end is listed completely for segments of a second, from %d s on', (from) => {
    const frames = videoPackets(video, constantFrames({ rate: 25, gop: 25, seconds: 40 }));
    const simulation = new LlhlsSimulation([video, audio], { segmentDuration: 1 });
    simulation.run(interleave(frames, without(sound, from, 40)));
    expect(problems(simulation)).toEqual([]);
    const [listed, other] = [segments(simulation, audio.id), segments(simulation, video.id)];
    expect(listed.filter(({ gap }) => gap).length).toBeGreaterThanOrEqual(4);
    expect(listed.at(-1)?.msn).toBeGreaterThanOrEqual((other.at(-1)?.msn ?? 0) - 2);
  });

  it('already listed as gaps excludes late frames up to the next keyframe', () => {
    const late = without(pictures, 15.3, 40).concat(pictures.filter(({ dts }) => dts >= 30 * 90_000));
    const before = interleave(without(pictures, 15.3, 40), without(sound, 38, 40));
    const simulation = run([...before, ...late.filter(({ dts }) => dts >= 30 * 90_000), ...without(sound, 0, 38)]);
    expect(problems(simulation)).toEqual([]);
    const listed = segments(simulation, video.id);
    const back = listed.findIndex(({ gap, parts }, index) => !gap && parts.length > 0 && listed[index - 1]?.gap === true);
    expect(back).toBeGreaterThan(0);
    expect(listed[back]?.parts[0]?.independent).toBe(true);
    listed.slice(1).forEach(({ programDateTime }, index) => {
      expect(programDateTime ?? 0).toBeGreaterThan(listed[index]?.programDateTime ?? 0);
    });
    expect(simulation.watched.every(({ jumps }) => jumps.every((jump) => jump > -0.03))).toBe(true);
  });

  it('of the audio is listed as a gap', () => {
    const simulation = run(interleave(pictures, without(sound, 16, 21)));
    expect(problems(simulation)).toEqual([]);
    expect(segments(simulation, audio.id).filter(({ gap }) => gap)).toHaveLength(2);
    for (const { duration, gap } of segments(simulation, audio.id)) if (!gap) expect(duration ?? SEGMENT).toBeGreaterThan(0.9);
    for (const distance of distances(simulation).slice(-3)) expect(Math.abs(distance)).toBeLessThan(0.03);
  });

  it('that fits into a segment is no gap', () => {
    const simulation = new LlhlsSimulation([video, audio], { segmentDuration: 6 });
    simulation.run(interleave(without(pictures, 14.5, 16.5), sound));
    expect(segments(simulation, video.id).some(({ gap }) => gap)).toBe(false);
  });

  it('answers 404 for the media of a gap', () => {
    const simulation = run(interleave(without(pictures, 16, 21), sound));
    const gap = segments(simulation, video.id).find((segment) => segment.gap);
    expect(simulation.delivery.get(gap?.uri ?? '').status).toBe(404);
  });

  it('of the clock of the source moves the date-times of all tracks alike, and leaves no gap between those of two segments', () => {
    const simulation = new LlhlsSimulation([video, audio], { segmentDuration: SEGMENT });
    const packets = interleave(pictures, sound);
    const half = packets.findIndex(({ dts, track }) => toSeconds(dts, track.timebase) >= 20.5);
    simulation.run(packets.slice(0, half));
    simulation.source.startedAt += 7000;
    simulation.run(packets.slice(half));
    const starts = segments(simulation, video.id).map(({ programDateTime }) => programDateTime ?? 0);
    const steps = starts.slice(1).map((start, index) => start - (starts[index] ?? 0));
    expect([steps.at(0), steps.at(-1)]).toEqual([2000, 2002]);
    expect(steps.every((step) => step === 2000 || step === 2002)).toBe(true);
    expect(distances(simulation).every((distance) => Math.abs(distance) < 0.03)).toBe(true);
  });
});

it('counts segments by presentation time when B-frames arrive at an uneven rate', () => {
  const times = constantFrames({ rate: 25, gop: 50, seconds: 40, bFrames: true });
  // Two of five frames are missing, as in film sent over a faster clock.
  const frames = videoPackets(
    video,
    times.filter(({ keyframe }, n) => keyframe || n % 5 < 3),
  );
  const simulation = new LlhlsSimulation([video], { segmentDuration: SEGMENT });
  simulation.run(frames);
  const listed = segments(simulation, video.id);
  expect(listed.length).toBeGreaterThan(5);
  listed.forEach(({ duration, programDateTime }, index) => {
    const next = listed[index + 1]?.programDateTime;
    if (next === undefined || next === null || duration === null) return;
    expect((next - (programDateTime ?? 0)) / 1000).toBeCloseTo(duration, 2);
  });
});
