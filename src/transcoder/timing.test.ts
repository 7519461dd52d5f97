import { spawnSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { audioConfig, TranscodeLab, type TranscodeRun, videoConfig } from '../../test/fakes/transcode-run.ts';
import { type EncodedMedia, encodeMedia } from '../../test/support/encoded-media.ts';
import { decodeComplaints } from '../../test/support/ffprobe.ts';
import { BoxWriter } from '../containers/isobmff/box-writer.ts';
import { writeFragmentHeader } from '../containers/isobmff/fragment.ts';
import { buildInitSegment } from '../containers/isobmff/init-segment.ts';
import type { EncodedPacket, EncodeRequest } from '../core/transcoding.ts';
import type { Packet } from '../media/packet.ts';
import { toSeconds } from '../media/timebase.ts';
import type { AudioTrack, VideoTrack } from '../media/track.ts';

const AUDIO = 1;
const RATE = 48_000;

let lab: TranscodeLab;
beforeAll(() => {
  lab = new TranscodeLab();
});
afterAll(() => lab.close());
const runs: TranscodeRun[] = [];
function open(...args: Parameters<TranscodeLab['open']>): TranscodeRun {
  const run = lab.open(...args);
  runs.push(run);
  return run;
}
afterEach(() => {
  for (const run of runs.splice(0)) run.session.close();
});

const encode = (overrides: Parameters<typeof audioConfig>[0] = {}): EncodeRequest => ({
  id: 10,
  sourceId: AUDIO,
  type: 'audio',
  encode: audioConfig(overrides),
});

/** Audio of one track with a tone that sets in after `silence` seconds. The rate is taken from the decoder configuration. */
function tone(options: { seconds: number; silence: number; rate: number; channels?: number; codec?: string }): EncodedMedia {
  const { seconds, silence, rate, channels = 2, codec = 'aac' } = options;
  const media = encodeMedia({
    video: null,
    audio: codec,
    seconds,
    extra: ['-af', `volume=0:enable='lt(t,${silence})'`, '-ar', String(rate), '-ac', String(channels)],
  });
  const track: AudioTrack = { ...media.audio!, sampleRate: media.audio!.timebase.den, channels };
  return { ...media, audio: track, packets: media.packets.map((packet) => ({ ...packet, track })) };
}

/** The time on the timeline, s, at which the audio of a file begins. */
function onset(file: Uint8Array, threshold = 1500): number {
  const args = ['-v', 'error', '-copyts', '-i', 'pipe:0', '-af', 'aresample=48000:async=1:first_pts=0', '-ac', '1', '-f', 's16le', '-'];
  const { stdout } = spawnSync('/usr/bin/ffmpeg', args, { input: file, maxBuffer: 64 * 1024 * 1024 });
  for (let at = 0; at + 1 < stdout.length; at += 2) if (Math.abs(stdout.readInt16LE(at)) > threshold) return at / 2 / RATE;
  throw new Error('there is no audio');
}

function fileOf(track: AudioTrack, packets: readonly Packet[]): Uint8Array {
  const writer = new BoxWriter();
  writeFragmentHeader(writer, {
    trackId: 1,
    sequence: 1,
    baseDecodeTime: packets[0]!.dts,
    video: false,
    samples: packets.map(({ data, duration }) => ({ size: data.length, duration, compositionOffset: 0, keyframe: true })),
  });
  return Buffer.concat([
    buildInitSegment(track, { timescale: track.timebase.den, trackId: 1 }),
    writer.view(),
    ...packets.map(({ data }) => data),
  ]);
}

/** The packets over and over, on a clock that is off by `skew`. */
function* looped(packets: readonly Packet[], seconds: number, skew: number): Generator<Packet> {
  const frame = packets[0]!.duration;
  const count = Math.floor((seconds * packets[0]!.track.timebase.den) / frame);
  for (let index = 0; index < count; index += 1) {
    const pts = Math.round(index * frame * (1 + skew));
    yield { ...packets[index % packets.length]!, pts, dts: pts };
  }
}

function expectGapless(run: TranscodeRun): void {
  const { packets } = run.made(10);
  // A single expectation for the packets of an hour.
  const ends = packets.map(({ pts, duration }) => pts + duration);
  expect(packets.flatMap(({ pts }, index) => (index > 0 && pts !== ends[index - 1] ? [[ends[index - 1], pts]] : []))).toEqual([]);
}

describe('encoded audio', () => {
  it.each([
    ['AAC as AAC', 48_000, audioConfig()],
    ['AAC as Opus', 48_000, audioConfig({ codec: 'opus' })],
    ['AAC at 44.1 kHz as AAC at 48 kHz', 44_100, audioConfig({ samplerate: 48_000 })],
    ['AAC at 44.1 kHz as Opus', 44_100, audioConfig({ codec: 'opus' })],
  ])('is at the same time as bypassed audio: %s', async (_name, rate, config) => {
    const media = tone({ seconds: 3, silence: 1.5, rate });
    const run = open([encode(config)], [media.audio!]);
    await run.feed(media.packets);
    await run.reaches(2.8);
    const bypassed = onset(fileOf(media.audio!, media.packets));
    expect(bypassed).toBeGreaterThan(1.4);
    expect(Math.abs(onset(run.file(10)) - bypassed)).toBeLessThan(0.015);
    expectGapless(run);
  });

  it.each([
    ['slow', 2e-4],
    ['fast', -2e-4],
  ])('is on time after an hour of a clock that is 200 ppm %s', async (_name, skew) => {
    // A low rate makes the hour short; the arithmetic is that of any rate.
    const rate = 8000;
    const media = tone({ seconds: 10, silence: 6, rate, channels: 1 });
    const track = media.audio!;
    const silent = media.packets.filter(({ pts }) => pts < 5 * rate);
    const run = open([encode({ bitrate: 48_000 })], [track]);
    const hour = [...looped(silent, 3600, skew)];
    const start = hour.at(-1)!.pts + silent[0]!.duration;
    const last = media.packets.map((packet) => ({ ...packet, pts: packet.pts + start, dts: packet.dts + start }));
    await run.feed(hour);
    await run.feed(last);
    await run.reaches(start / rate + 9.5);
    expectGapless(run);
    const { packets } = run.made(10);
    const tail = packets.filter(({ pts }) => pts >= start - rate);
    const shifted = (list: readonly EncodedPacket[]) =>
      list.map((packet) => ({
        ...packet,
        track: run.track<AudioTrack>(10),
        pts: packet.pts - start + rate,
        dts: packet.dts - start + rate,
      }));
    const there = onset(fileOf(run.track<AudioTrack>(10), shifted(tail)), 2500) - 1;
    expect(Math.abs(there - onset(fileOf(track, media.packets), 2500))).toBeLessThan(0.02);
  });

  it('fills gaps with silence, so that later audio is on time', async () => {
    const media = tone({ seconds: 4, silence: 3, rate: 48_000 });
    const holed = media.packets.filter(({ pts }) => pts < RATE || pts >= 2 * RATE);
    const run = open([encode({ codec: 'opus' })], [media.audio!]);
    await run.feed(holed);
    await run.reaches(3.8);
    expectGapless(run);
    expect(Math.abs(onset(run.file(10)) - onset(fileOf(media.audio!, media.packets)))).toBeLessThan(0.015);
  });

  it('has no gap and stays on time when the source changes its format', async () => {
    const seconds = 1.97;
    const first = tone({ seconds: 3, silence: 1, rate: 44_100, channels: 1 });
    const second = tone({ seconds: 3, silence: 1, rate: 48_000 });
    // Items one behind the other, as a channel plays them; beeps begin one second into each.
    const begins: number[] = [];
    const packets: Packet[] = [];
    for (let item = 0; item < 6; item += 1) {
      const media = item % 2 === 0 ? first : second;
      const { den: rate } = media.audio!.timebase;
      const start = Math.round(item * seconds * rate);
      begins.push(item * seconds + onset(fileOf(media.audio!, media.packets)));
      for (const packet of media.packets) {
        if (packet.pts < 0 || packet.pts + packet.duration > seconds * rate) continue;
        packets.push({ ...packet, pts: packet.pts + start, dts: packet.dts + start });
      }
    }
    const run = open([encode({ samplerate: 48_000, channel: 2 })], [first.audio!]);
    await run.feed(packets);
    await run.reaches(6 * seconds - 0.3);
    expectGapless(run);
    const { packets: made } = run.made(10);
    for (const [item, at] of begins.entries()) {
      const tail = made.filter(({ pts }) => pts >= (item * seconds + 0.4) * RATE);
      const moved = tail.map((packet) => ({
        ...packet,
        track: run.track<AudioTrack>(10),
        pts: packet.pts - tail[0]!.pts,
        dts: packet.dts - tail[0]!.pts,
      }));
      expect(Math.abs(onset(fileOf(run.track<AudioTrack>(10), moved)) + tail[0]!.pts / RATE - at), `item ${item}`).toBeLessThan(0.03);
    }
  });

  it('of an encode that follows its source changes for more channels alone', async () => {
    const seconds = 1.5;
    const forms = [
      { rate: 44_100, channels: 1 },
      { rate: 48_000, channels: 2 },
      { rate: 44_100, channels: 1 },
      { rate: 48_000, channels: 2 },
    ].map((form) => tone({ seconds: 2, silence: 0, ...form }));
    const packets = forms.flatMap(({ audio, packets: all }, item) => {
      const { den: rate } = audio!.timebase;
      const kept = all.filter(({ pts, duration }) => pts >= 0 && pts + duration <= seconds * rate);
      return kept.map((packet) => ({ ...packet, pts: packet.pts + item * seconds * rate, dts: packet.dts + item * seconds * rate }));
    });
    const run = open([encode(), { ...encode({ codec: 'opus' }), id: 11 }], [forms[0]!.audio!]);
    await run.feed(packets);
    await run.reaches(4 * seconds - 0.3);
    for (const [id, rate] of [
      [10, 44_100],
      [11, 48_000],
    ] as const) {
      expect(run.made(id).tracks.map((track) => track.type === 'audio' && [track.channels, track.sampleRate])).toEqual([
        [1, rate],
        [2, rate],
      ]);
    }
  });

  it('continues at the new time after a jump that is too long to fill', async () => {
    const media = tone({ seconds: 2, silence: 0, rate: 48_000 });
    const jump = 60 * RATE;
    const run = open([encode()], [media.audio!]);
    await run.feed([...media.packets, ...media.packets.map((packet) => ({ ...packet, pts: packet.pts + jump, dts: packet.dts + jump }))]);
    await run.reaches(61.8);
    const { packets } = run.made(10);
    expect(packets.length).toBeLessThan(250);
    const resumed = packets.find(({ pts }) => pts >= jump - 2048)!;
    expect(toSeconds(resumed.pts, { num: 1, den: RATE })).toBeLessThan(60.1);
  });

  it.each([
    ['mono as stereo', 1, audioConfig({ channel: 2 }), 2],
    ['5.1 as stereo', 6, audioConfig({ channel: 2 }), 2],
    ['5.1 as 5.1', 6, audioConfig(), 6],
    ['5.1 as stereo where Opus has no channel setting', 6, audioConfig({ codec: 'opus' }), 2],
  ])('mixes channels: %s', async (_name, channels, config, expected) => {
    const media = tone({ seconds: 1.5, silence: 0, rate: 48_000, channels });
    const run = open([encode(config)], [media.audio!]);
    await run.feed(media.packets);
    await run.reaches(1.2);
    expect(run.track<AudioTrack>(10).channels).toBe(expected);
    // A mix is quieter than its parts.
    expect(onset(run.file(10), 200)).toBeLessThan(0.1);
  });
});

describe('encoded frames', () => {
  const video = (id: number, overrides: Parameters<typeof videoConfig>[0] = {}): EncodeRequest => ({
    id,
    sourceId: 0,
    type: 'video',
    encode: videoConfig({ height: 90, ...overrides }),
  });

  it('have their keyframes at the same instants at all frame rates', async () => {
    const media = encodeMedia({ video: 'libx264', audio: null, seconds: 5, extra: ['-bf', '0', '-g', '45', '-preset', 'ultrafast'] });
    const interval = { keyFrameInterval: 2000, keyFrameIntervalType: 'time' } as const;
    const run = open(
      [video(10, { framerate: 30, ...interval }), video(11, { framerate: 15, ...interval }), video(12, { framerate: 10, ...interval })],
      [media.video!],
    );
    await run.feed(media.packets);
    await run.reaches(4.7);
    for (const id of [10, 11, 12]) {
      const keyframes = run.made(id).packets.filter(({ keyframe }) => keyframe);
      expect(keyframes.map(({ pts }) => pts)).toEqual([0, 180_000, 360_000]);
    }
  });

  it('are switched with the source when keyframes follow the source', async () => {
    const media = encodeMedia({
      video: 'libx264',
      audio: null,
      seconds: 5,
      extra: ['-bf', '0', '-g', '45', '-keyint_min', '45', '-preset', 'ultrafast'],
    });
    const run = open([video(10), video(11, { height: 60 })], [media.video!]);
    await run.feed(media.packets);
    await run.makes(11, 150);
    await run.makes(10, 150);
    const source = media.packets.filter(({ keyframe }) => keyframe).map(({ pts }) => pts);
    for (const id of [10, 11]) {
      const keyframes = new Set(
        run
          .made(id)
          .packets.filter(({ keyframe }) => keyframe)
          .map(({ pts }) => pts),
      );
      expect(source.filter((pts) => !keyframes.has(pts))).toEqual([]);
    }
  });

  it('can be switched with a bypassed source at any frame rate and keyframe interval', async () => {
    const media = encodeMedia({
      video: 'libx264',
      audio: null,
      seconds: 8,
      extra: ['-bf', '0', '-r', '30000/1001', '-g', '50', '-keyint_min', '50', '-sc_threshold', '0', '-preset', 'ultrafast'],
    });
    const second = { keyFrameInterval: 1000, keyFrameIntervalType: 'time' } as const;
    const rates = { 10: 0, 11: 30, 12: 15 } as const;
    const encodes = Object.entries(rates).map(([id, framerate]) => video(Number(id), { framerate, ...second }));
    const run = open(encodes, [media.video!], { bypassedSources: [0] });
    await run.feed(media.packets);
    await run.reaches(7.8);
    const source = media.packets.filter(({ keyframe }) => keyframe).map(({ pts }) => pts);
    expect(source.length).toBe(5);
    for (const [id, framerate] of Object.entries(rates)) {
      const keyframes = run.made(Number(id)).packets.filter(({ keyframe }) => keyframe);
      const slack = framerate === 0 ? 0 : 45_000 / framerate;
      const far = source.filter((at) => !keyframes.some(({ pts }) => Math.abs(pts - at) <= slack));
      expect(far, `keyframes of the source that ${framerate} fps does not have`).toEqual([]);
      expect(keyframes.length).toBeLessThanOrEqual(10);
    }
  });

  it('of a source with B-frames come in display order at their times', async () => {
    const media = encodeMedia({
      video: 'libx264',
      audio: null,
      seconds: 3,
      extra: ['-bf', '3', '-preset', 'ultrafast', '-x264-params', 'b-adapt=0'],
    });
    const sent = media.packets.map(({ pts }) => pts).sort((a, b) => a - b);
    const run = open([video(10)], [media.video!]);
    await run.feed(media.packets);
    // The decoder keeps the last frames back for reordering until more comes.
    await run.makes(10, 85);
    expect(run.made(10).packets.map(({ pts }) => pts)).toEqual(sent.slice(0, run.made(10).packets.length));
  });

  it('at a constant rate follow a variable one', async () => {
    const media = encodeMedia({ video: 'libx264', audio: null, seconds: 4, extra: ['-bf', '0', '-preset', 'ultrafast'] });
    const sparse = media.packets.filter(({ keyframe }, index) => keyframe || index < 40 || index > 60);
    const run = open([video(10, { framerate: 30 })], [media.video!]);
    await run.feed(sparse);
    await run.reaches(3.9);
    const { packets } = run.made(10);
    expect(packets.every(({ pts }, index) => index === 0 || pts - packets[index - 1]!.pts === 3000)).toBe(true);
  });

  it('have a size that fits the shape of an anamorphic source', async () => {
    const media = encodeMedia({
      video: 'libx264',
      audio: null,
      seconds: 1,
      extra: ['-bf', '0', '-vf', 'scale=360:288,setsar=64/45', '-preset', 'ultrafast'],
    });
    const run = open([video(10, { height: 288 }), video(11, { height: 0 })], [{ ...media.video!, width: 360, height: 288 }]);
    await run.feed(media.packets);
    await run.reaches(0.8);
    expect(run.track<VideoTrack>(10)).toMatchObject({ width: 512, height: 288 });
    expect(run.track<VideoTrack>(11)).toMatchObject({ width: 360, height: 288 });
  });

  it('of a source with odd sides are as large as it, rounded up to even', async () => {
    const media = encodeMedia({
      video: 'libvpx-vp9',
      audio: null,
      seconds: 1,
      extra: ['-vf', 'scale=321:181,setsar=1', '-deadline', 'realtime', '-cpu-used', '8'],
    });
    const run = open([video(10, { height: 0 }), video(11, { codec: 'vp8', height: 91 })], [{ ...media.video!, width: 321, height: 181 }]);
    await run.feed(media.packets);
    await run.reaches(0.8);
    expect(run.track<VideoTrack>(10)).toMatchObject({ width: 322, height: 182 });
    expect(run.track<VideoTrack>(11)).toMatchObject({ width: 164, height: 92 });
    expect(decodeComplaints(run.file(10))).toEqual([]);
  });
});
