/** Subtitles in LL-HLS: their segments and parts beside those of the video, and the cues in them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  cuePacket,
  interleave,
  subtitleTrack,
  videoPackets,
  videoTrack,
} from '../../../../../test/fakes/synthetic-media.ts';
import { LlhlsSimulation } from '../../../../../test/validator/llhls-simulation.ts';
import type { Packet } from '../../../../media/packet.ts';
import { StreamModel } from '../../wire/fmp4/stream-model.ts';
import type { LlhlsUpdate } from '../../wire/fmp4/update.ts';
import type { ObservedSegment } from '../segment-observer.ts';
import { CutSchedule } from './cut-schedule.ts';
import { SubtitlePackager } from './subtitle-packager.ts';

const video = videoTrack();
const audio = audioTrack();
const english = subtitleTrack({ isDefault: true, autoSelect: true });
const korean = subtitleTrack({ id: 6, publicName: 'Korean', language: 'ko' });

function media(seconds: number, from = 0): Packet[] {
  return interleave(videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds, from })), audioPackets(audio, seconds, from));
}

function simulate(cues: readonly Packet[], seconds = 30, settings = {}): LlhlsSimulation {
  const simulation = new LlhlsSimulation([video, audio, english, korean], { segmentDuration: 4, ...settings });
  simulation.run(interleave(media(seconds), [...cues]));
  return simulation;
}

function watched(simulation: LlhlsSimulation, id: number) {
  const track = simulation.watched.find((candidate) => candidate.id === id);
  if (track === undefined) throw new Error(`no track ${id}`);
  return track;
}

const textOf = (simulation: LlhlsSimulation, uri: string): string => simulation.delivery.get(uri).text;

/** Lines of a playlist that must be the same for all tracks, without names. */
function shape(simulation: LlhlsSimulation, id: number): string[] {
  return textOf(simulation, watched(simulation, id).uri)
    .split('\n')
    .filter((line) => !/MAP:|RENDITION-REPORT/.test(line))
    .map((line) => line.replace(/_\d_(.*)(?:video|subtitle)(.*)\.(?:m4s|vtt)/, '_$1$2').replace(',INDEPENDENT=YES', ''));
}

describe('subtitles in LL-HLS', () => {
  it('have the segments and parts of the video, without additional problems', () => {
    const simulation = simulate([cuePacket(english, [9000, 10_500], 'hi')]);
    expect(simulation.problems).toEqual([]);
    expect(simulation.watched.map(({ id }) => id).toSorted()).toEqual([0, 1, 5, 6]);
    expect(shape(simulation, 5)).toEqual(shape(simulation, 0));
    expect(shape(simulation, 6)).toEqual(shape(simulation, 0));
    const playlist = textOf(simulation, watched(simulation, 5).uri);
    expect(playlist).not.toContain('EXT-X-MAP');
    expect(playlist).toContain('LAST-MSN');
    const master = textOf(simulation, 'llhls.m3u8');
    expect(master).toContain(
      '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subtitle",NAME="English",DEFAULT=YES,AUTOSELECT=YES,FORCED=NO,LANGUAGE="en",URI="',
    );
    expect(master).toContain('NAME="Korean",DEFAULT=NO,AUTOSELECT=NO,FORCED=NO,LANGUAGE="ko"');
    expect(master).toMatch(/,AUDIO="audio",SUBTITLES="subtitle"\n/);
    // Each language has its own cues.
    expect([...watched(simulation, 6).parts.values()].join('')).not.toContain('hi');
  });

  const at = (rate: number, gop: number) => (seconds: number, from: number) => constantFrames({ rate, gop, seconds, from });
  /** Packets of a source with times in whole milliseconds and an average duration of frames. */
  const rounded = (packets: readonly Packet[]): Packet[] =>
    packets.map((packet) => {
      const dts = Math.round(packet.dts / 90) * 90;
      return { ...packet, dts, pts: dts, duration: 1500 };
    });
  it.each<{ what: string; packets: Packet[]; chunkDuration?: number }>([
    { what: 'a film that is cut short', packets: videoPackets(video, [...at(30, 60)(7.98, 0), ...at(30, 60)(12, 7.979)]) },
    { what: 'a hole before a film', packets: videoPackets(video, [...at(30, 60)(8, 0), ...at(30, 60)(12, 8.06)]) },
    {
      what: 'a film whose frames are decoded earlier from its second one on',
      packets: videoPackets(video, at(30, 60)(20, 0)).map((packet) => {
        const { pts } = packet;
        return pts > 8 * 90_000 ? { ...packet, dts: Math.max(pts - 6000, 8 * 90_000 + (pts - 8 * 90_000) / 3) } : packet;
      }),
    },
    { what: 'times in milliseconds', packets: rounded(videoPackets(video, at(60, 60)(20, 0))) },
    { what: 'times in milliseconds that do not repeat', packets: rounded(videoPackets(video, at(59.94, 125)(20, 0))) },
    { what: 'parts that have no decimal', packets: videoPackets(video, at(30, 60)(20, 0)), chunkDuration: 0.34 },
  ])('have parts that sum up to at least their segment: $what', ({ packets, chunkDuration = 0.5 }) => {
    const simulation = new LlhlsSimulation([video, english], { segmentDuration: 2, chunkDuration });
    const missing = new Map<number, number>();
    for (const packet of packets) {
      simulation.run([packet]);
      for (const { msn, duration, parts } of simulation.watched.find(({ id }) => id === 5)?.playlist?.segments ?? []) {
        if (duration === null || parts.length === 0) continue;
        missing.set(msn, duration - parts.reduce((sum, part) => sum + part.duration, 0));
      }
    }
    expect(simulation.problems.filter((problem) => !problem.startsWith('track 0'))).toEqual([]);
    expect(missing.size).toBeGreaterThan(5);
    // The tolerance of hls.js is a microsecond.
    expect([...missing.values()].filter((seconds) => seconds > 0.5e-6)).toEqual([]);
    const { segments = [] } = watched(simulation, 5).playlist ?? {};
    const [first, last] = [segments[0], segments.findLast(({ duration }) => duration !== null)];
    const listed = segments.slice(0, segments.indexOf(last!)).reduce((sum, { duration }) => sum + (duration ?? 0), 0);
    expect(Math.abs(listed - ((last?.programDateTime ?? 0) - (first?.programDateTime ?? 0)) / 1000)).toBeLessThan(0.0065);
  });

  it('have each cue in all segments and parts that overlap it, and in no others', () => {
    const simulation = simulate([cuePacket(english, [9300, 13_200], 'long', { settings: 'line:10%' })]);
    const { playlist, parts } = watched(simulation, 5);
    const epoch = simulation.source.startedAt;
    let seen = 0;
    for (const { uri, parts: listed, programDateTime, duration } of playlist?.segments ?? []) {
      const start = (programDateTime ?? 0) - epoch;
      if (uri !== null && duration !== null) {
        const whole = textOf(simulation, uri);
        expect(whole.startsWith('WEBVTT\nX-TIMESTAMP-MAP=LOCAL:')).toBe(true);
        expect([start, whole.includes('long')]).toEqual([start, start < 13_200 && start + duration * 1000 > 9300]);
      }
      let at = start;
      for (const part of listed) {
        const end = at + part.duration * 1000;
        expect([at, Buffer.from(parts.get(part.uri) ?? []).includes('long')]).toEqual([at, at < 13_200 && end > 9300]);
        at = end;
        seen += 1;
      }
    }
    expect(seen).toBeGreaterThan(10);
    const all = [...parts.values()].map((bytes) => Buffer.from(bytes).toString());
    expect(all.filter((text) => text.includes('long')).length).toBeGreaterThanOrEqual(8);
    for (const text of all) {
      expect(text).toMatch(
        /^WEBVTT\nX-TIMESTAMP-MAP=LOCAL:[\d:.]+,MPEGTS:\d+\n(\n9300-13200-0\n00:00:09\.300 --> 00:00:13\.200 line:10%\nlong\n)?$/,
      );
    }
  });

  it('map their local time to the time of the fragments', () => {
    // B-frames that begin below zero move all fragments up by a second.
    const frames = videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 20 })).map((packet) => ({
      ...packet,
      dts: packet.dts - 6000,
    }));
    const simulation = new LlhlsSimulation([video, english], { segmentDuration: 4 });
    simulation.run(interleave(frames, [cuePacket(english, [5000, 6000], 'x')]));
    const listed = watched(simulation, 5).playlist?.segments ?? [];
    const start = (listed[1]?.programDateTime ?? 0) - simulation.source.startedAt;
    const [, local = '', ticks = ''] = /LOCAL:([\d:.]+),MPEGTS:(\d+)/.exec(textOf(simulation, listed[1]?.uri ?? '')) ?? [];
    expect(local).toBe(`00:00:${(start / 1000).toFixed(3).padStart(6, '0')}`);
    expect(Number(ticks)).toBe((start + 1000) * 90);
  });

  it('are left out of playlists with EnableSubtitles off', () => {
    const playlist = {
      ...{ name: 'p', fileName: 'plain' },
      options: { webrtcAutoAbr: false, hlsChunklistPathDepth: 0, enableTsPackaging: false, enableSubtitles: false },
      renditions: [{ name: 'd', videoVariantName: 'video', audioVariantName: 'audio', videoIndexHint: -1, audioIndexHint: -1 }],
    };
    const simulation = new LlhlsSimulation([video, audio, english], {}, playlist);
    simulation.run(media(20));
    expect(textOf(simulation, 'plain.m3u8')).not.toContain('SUBTITLES');
  });

  it('start at the current segment when they are added later, and end with their track', () => {
    const simulation = new LlhlsSimulation([video, audio], { segmentDuration: 4 });
    simulation.run(media(20));
    simulation.source.tracks = [video, audio, english];
    simulation.stream.onTracks(simulation.source.tracks);
    simulation.run(interleave(media(20, 20), [cuePacket(english, [25_000, 26_000], 'late')]));
    const track = simulation.stream.model.tracks.get(5);
    const leader = simulation.stream.model.tracks.get(0);
    expect(track?.segments.map(({ msn, duration }) => [msn, duration])).toEqual(
      leader?.segments.slice(-(track?.segments.length ?? 0)).map(({ msn, duration }) => [msn, duration]),
    );
    expect(track?.partTarget).toBe(leader?.partTarget);
    expect(textOf(simulation, 'llhls.m3u8')).toContain('TYPE=SUBTITLES');
    simulation.source.tracks = [video, audio];
    simulation.stream.onTracks(simulation.source.tracks);
    simulation.run(media(5, 40));
    expect(simulation.stream.model.tracks.has(5)).toBe(false);
    expect(textOf(simulation, 'llhls.m3u8')).not.toContain('SUBTITLES');
  });

  it('follow the audio when the video is removed, with consecutive numbers', () => {
    const simulation = simulate([], 20);
    simulation.source.tracks = [audio, english, korean];
    simulation.watched.splice(simulation.watched.indexOf(watched(simulation, 0)), 1);
    simulation.stream.onTracks(simulation.source.tracks);
    simulation.run(interleave(audioPackets(audio, 20, 20), [cuePacket(english, [30_000, 31_000], 'still here')]));
    const segments = simulation.stream.model.tracks.get(5)?.segments ?? [];
    const numbers = segments.map(({ msn }) => msn);
    expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index));
    const audioSegments = simulation.stream.model.tracks.get(1)?.segments ?? [];
    expect(numbers.at(-1)).toBe(audioSegments.at(-1)?.msn);
    const files = segments.filter(({ whole }) => whole !== null).map((segment) => simulation.stream.copyOf(segment).toString());
    expect(files.some((text) => text.includes('still here'))).toBe(true);
  });

  it('list the pauses of the source as it does', () => {
    const simulation = new LlhlsSimulation([video, english], { segmentDuration: 4 });
    const frames = (from: number, seconds: number) => videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds, from }));
    simulation.run([...frames(0, 12), cuePacket(english, [31_000, 33_000], 'back'), ...frames(30, 12)]);
    const gaps = (id: number) => simulation.stream.model.tracks.get(id)?.segments.map(({ gap, duration }) => [gap, duration]);
    expect(gaps(5)).toEqual(gaps(0));
    expect(gaps(5)?.some(([gap]) => gap === true)).toBe(true);
    expect(simulation.problems).toEqual([]);
  });

  it('pass whole files to observers, and all existing parts to late views', () => {
    const simulation = new LlhlsSimulation([video, audio, english], { segmentDuration: 4 });
    const seen: (Pick<ObservedSegment, 'uri' | 'init'> & { readonly text: string })[] = [];
    simulation.stream.observe({
      segmentFinished: ({ uri, init, read }) => seen.push({ uri, init, text: read().toString() }),
      streamEnded: () => undefined,
    });
    simulation.run(interleave(media(20), [cuePacket(english, [5000, 9000], 'kept')]));
    const files = seen.filter(({ uri }) => uri.endsWith('.vtt'));
    expect(files.length).toBe(seen.filter(({ uri }) => uri.includes('_video_')).length);
    expect(files.every(({ init, text }) => init === null && text.startsWith('WEBVTT\n') && !text.slice(6).includes('WEBVTT'))).toBe(true);
    expect(files.filter(({ text }) => text.includes('kept')).length).toBeGreaterThanOrEqual(2);
    expect(simulation.stream.newestSegments().some(({ uri }) => uri.endsWith('.vtt'))).toBe(true);
    const copy = new StreamModel();
    for (const update of simulation.stream.model.snapshot()) copy.apply(update);
    const places = (model: StreamModel) => model.tracks.get(5)?.segments.map(({ msn, whole, parts }) => [msn, whole, parts.length]);
    expect(places(copy)).toEqual(places(simulation.stream.model));
    expect(places(copy)?.every(([, whole], index, all) => index === all.length - 1 || whole !== null)).toBe(true);
  });

  it('can be rewound to from files', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-subtitles-'));
    try {
      const dVR = { enable: true, tempStoragePath: folder, maxDuration: 600 };
      const simulation = new LlhlsSimulation([video, audio, english], { segmentDuration: 2, segmentCount: 3, dVR });
      for (let from = 0; from < 60; from += 5) {
        simulation.run(interleave(media(5, from), from === 0 ? [cuePacket(english, [3000, 4000], 'long ago')] : []));
        await simulation.stream.settled;
      }
      const [oldest] = simulation.stream.model.tracks.get(5)?.segments.filter(({ path }) => path !== null) ?? [];
      expect(oldest?.path).toMatch(/\/5\/\d+\.vtt$/);
      expect(oldest?.whole).toBeNull();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('carry a small remainder of a segment over to the next part, or list a large one as a part', () => {
    const schedule = new CutSchedule(() => 0);
    for (let msn = 0; msn < 5; msn += 1) schedule.add(msn, msn * 2000);
    const updates: LlhlsUpdate[] = [];
    const packager = new SubtitlePackager(english, { schedule, offset: () => 0, store: () => [], emit: (update) => updates.push(update) });
    packager.setPartTarget(0.502);
    const segment = (msn: number, parts: readonly number[]) => {
      const opened = { startTime: msn * 2000, generation: 0, discontinuity: false, gap: false, tags: '' };
      packager.follow({ type: 'segment-open', trackId: 0, msn, ...opened });
      parts.forEach((duration, part) => {
        packager.follow({ type: 'part', trackId: 0, msn, part, duration, independent: false, likelyLast: false, spans: [] });
      });
      packager.follow({ type: 'segment-close', trackId: 0, duration: 2 });
    };
    segment(0, [0.5, 0.5, 0.5, 0.496]);
    segment(1, [0.5, 0.5, 0.5, 0.52]);
    segment(2, [0.5, 0.5, 0.5, 0.494]);
    segment(3, [0.5, 0.5, 0.3]);
    const listed: number[][] = [];
    for (const update of updates) {
      if (update.type === 'segment-open') listed.push([]);
      if (update.type === 'part' || update.type === 'segment-close') listed.at(-1)?.push(Math.round(update.duration * 1e6) / 1e6);
    }
    expect(listed).toEqual([
      [0.5, 0.5, 0.5, 0.496, 1.996],
      // Parts have the maximum length until nothing is missing.
      [0.502, 0.502, 0.5, 0.502, 2.004],
      [0.5, 0.5, 0.5, 0.494, 0.006, 2],
      [0.5, 0.5, 0.3, 0.502, 0.198, 2],
    ]);
  });

  it('list segments as gaps whose parts were never announced, because segment numbers have no holes', () => {
    const schedule = new CutSchedule(() => 1_000_000);
    for (let msn = 0; msn < 5; msn += 1) schedule.add(msn, msn * 4000);
    const updates: LlhlsUpdate[] = [];
    const packager = new SubtitlePackager(english, { schedule, offset: () => 0, store: () => [], emit: (update) => updates.push(update) });
    const open = (msn: number) =>
      packager.follow({
        ...{ type: 'segment-open', trackId: 0, msn, startTime: 1_000_000 + msn * 4000, generation: 0 },
        ...{ discontinuity: false, gap: false, tags: '' },
      });
    open(0);
    packager.follow({ type: 'segment-close', trackId: 0, duration: 4 });
    // Two other tracks lead: the first is further on, the second is behind.
    open(3);
    open(2);
    const opened = updates.flatMap((update) => (update.type === 'segment-open' ? [[update.msn, update.gap, update.startTime]] : []));
    expect(opened).toEqual([
      [0, false, 1_000_000],
      [1, true, 1_004_000],
      [2, true, 1_008_000],
      [3, false, 1_012_000],
    ]);
    const closed = updates.flatMap((update) => (update.type === 'segment-close' ? [update.duration] : []));
    expect(closed).toEqual([4, 4, 4]);
  });

  it('do not grow however many cues wait', () => {
    const flood = Array.from({ length: 2000 }, (_, index) => cuePacket(english, [8000 + index, 600_000], `cue ${index}`, { told: 8000 }));
    const simulation = simulate(flood, 16);
    const longest = Math.max(...[...watched(simulation, 5).parts.values()].map((bytes) => bytes.length));
    expect(longest).toBeLessThan(64 * 1024);
    expect(longest).toBeGreaterThan(8 * 1024);
  });
});
