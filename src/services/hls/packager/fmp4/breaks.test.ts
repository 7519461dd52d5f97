/** Breaks in LL-HLS: where segments are cut for them, what all playlists say, and delta updates. */
import { describe, expect, it } from 'vitest';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  dataTrack,
  interleave,
  videoPackets,
  videoTrack,
} from '../../../../../test/fakes/synthetic-media.ts';
import { LlhlsSimulation } from '../../../../../test/validator/llhls-simulation.ts';
import { buildCue } from '../../../../containers/markers/cue.ts';
import { buildSpliceInsert } from '../../../../containers/markers/splice-info.ts';
import type { Packet } from '../../../../media/packet.ts';
import { MILLISECONDS } from '../../../../media/timebase.ts';
import type { EventFormat } from '../../../../media/timed-event.ts';

const video = videoTrack();
const audio = audioTrack();
const data = { ...dataTrack(2), timebase: MILLISECONDS };

/** A marker that comes at `told` ms, for the media at `pts` ms. */
function marker(told: number, pts: number, format: EventFormat, bytes: Uint8Array): Packet {
  return { track: data, pts, dts: told, duration: 0, keyframe: true, data: bytes, event: { format, target: 'all' } };
}

const cue = (told: number, pts: number, type: 'out' | 'in', duration = 0): Packet =>
  marker(told, pts, 'cue', buildCue({ type, duration, elapsed: 0 }));

function run(events: readonly Packet[], seconds = 30): LlhlsSimulation {
  const simulation = new LlhlsSimulation([video, audio], { segmentDuration: 6 });
  const frames = videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds }));
  simulation.run(interleave(frames, audioPackets(audio, seconds), [...events]));
  return simulation;
}

/** The lines of breaks of each track with the second of media before which they stand. */
function breaksOf(simulation: LlhlsSimulation): (readonly [string, number])[][] {
  return [...simulation.stream.model.tracks.values()].map(({ segments }) =>
    segments.flatMap(({ tags, startTime }) =>
      tags === '' ? [] : [[tags.trimEnd(), Math.round((startTime - simulation.source.startedAt) / 1000)] as const],
    ),
  );
}

describe('breaks in LL-HLS', () => {
  it('cut all tracks at the first keyframe from their time on, and keep segments at their full length around them', () => {
    const simulation = run([cue(7000, 9000, 'out', 4000), cue(12_000, 14_000, 'in')]);
    const expected = [
      ['#EXT-X-CUE-OUT:DURATION=4.000', 10],
      ['#EXT-X-CUE-IN', 14],
    ];
    expect(breaksOf(simulation)).toEqual([expected, expected]);
    expect(simulation.problems).toEqual([]);
  });

  it('cut audio that arrives a second before its frames at the same time', () => {
    const simulation = new LlhlsSimulation([video, audio], { segmentDuration: 6 });
    const frames = videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 30 }));
    const arrival = ({ dts, track }: Packet): number => dts / (track.timebase.den / 1000) - (track === audio ? 1000 : 0);
    const packets = [...frames, ...audioPackets(audio, 30), cue(3000, 4000, 'out')];
    simulation.run(packets.toSorted((a, b) => arrival(a) - arrival(b)));
    const expected = [['#EXT-X-CUE-OUT', 4]];
    expect(breaksOf(simulation).map((lines) => lines.slice(0, 1))).toEqual([expected, expected]);
    expect(simulation.problems).toEqual([]);
  });

  it('use a keyframe that comes slightly before their time', () => {
    expect(breaksOf(run([cue(7000, 8015, 'out', 4000)]))[0]?.[0]).toEqual(['#EXT-X-CUE-OUT:DURATION=4.000', 8]);
  });

  it('keep their date ranges in delta updates, without the tags of segments', () => {
    const out = buildSpliceInsert({ id: 5, type: 'out', time: 0, duration: 180_000, autoReturn: true });
    const simulation = run([cue(8000, 10_000, 'out', 4000), marker(8000, 10_000, 'scte35', out)], 70);
    const multivariant = simulation.delivery.get('llhls.m3u8').text;
    const chunklist = /chunklist_0_video_\w+_llhls\.m3u8/.exec(multivariant)?.[0] ?? '';
    const full = simulation.delivery.get(`${chunklist}?session=1_FakeKey1`).text;
    const delta = simulation.delivery.get(`${chunklist}?session=1_FakeKey1&_HLS_skip=YES`).text;
    const range = full.split('\n').filter((line) => line.startsWith('#EXT-X-DATERANGE'));
    expect(range).toHaveLength(1);
    expect(full).toContain('#EXT-X-CUE-OUT:');
    const lines = delta.split('\n');
    const skip = lines.findIndex((line) => line.startsWith('#EXT-X-SKIP'));
    expect(skip).toBeGreaterThan(0);
    expect(lines[skip + 1]).toBe(range[0]);
    expect(delta).not.toContain('#EXT-X-CUE-OUT:');
  });

  it('are kept in snapshots for threads that start late', () => {
    const simulation = run([cue(7000, 9000, 'out')]);
    const opened = simulation.stream.model.snapshot().flatMap((update) => (update.type === 'segment-open' ? update.tags : []));
    expect(opened.filter((tags) => tags === '#EXT-X-CUE-OUT\n')).toHaveLength(2);
  });

  it('end with a conclusion in the stream', () => {
    const simulation = run([marker(8000, 8000, 'conclusion', new Uint8Array(0))]);
    expect(simulation.stream.concluded).toBe(true);
    const [track] = simulation.stream.model.tracks.values();
    const seconds = track?.segments.reduce((sum, { duration }) => sum + (duration ?? 0), 0) ?? 0;
    expect(Math.abs(seconds - 8)).toBeLessThan(0.2);
  });
});
