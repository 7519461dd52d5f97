import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FakeTranscoder } from '../../test/fakes/fake-transcoder.ts';
import { type FilmOptions, FilmSources } from '../../test/fakes/film.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import type { SourceTrack } from '../core/ingest.ts';
import { QueueRegistry } from '../core/queue-registry.ts';
import type { Transcoder } from '../core/transcoding.ts';
import { AudioCodec, VideoCodec } from '../media/codec.ts';
import { toSeconds } from '../media/timebase.ts';
import { TranscoderSupervisor } from '../transcoder/supervisor.ts';
import { AllowedFolders } from '../util/allowed-folders.ts';
import { systemClock } from '../util/clock.ts';
import { ConformedSource } from './conformed-source.ts';
import { conversionOf } from './conversion.ts';
import { FileSource } from './file-source.ts';
import type { ItemSource } from './item-source.ts';
import { MediaRoot } from './media-root.ts';

const ADDRESS = { vhost: 'default', app: 'app', stream: 'tv' };
const SOURCE = ['-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=24', '-f', 'lavfi', '-i', 'sine=sample_rate=44100', '-t', '4.1'];
const H265 = ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=none', '-g', '24', '-bf', '3'];

let folder: string;
let supervisor: TranscoderSupervisor;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-conformed-'));
  const clock = systemClock;
  supervisor = new TranscoderSupervisor({ clock, logger: new RecordingLogger(), queues: new QueueRegistry(clock) });
  execFileSync('ffmpeg', ['-v', 'error', '-y', ...SOURCE, ...H265, '-c:a', 'libopus', join(folder, 'film.mp4')]);
});
afterAll(async () => {
  await supervisor.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The codecs of the channel. */
type Present = { readonly video: VideoCodec; readonly audio: AudioCodec };
const AAC_AND_H264: Present = { video: VideoCodec.H264, audio: AudioCodec.AAC };

function conformed(
  source: ItemSource,
  present: Present,
  transcoder: Transcoder | null,
): { conformed: ConformedSource; slow: () => number } {
  let slow = 0;
  const announced = (type: SourceTrack['type']): SourceTrack =>
    (type === 'video'
      ? { type, codec: present.video }
      : { type, codec: present.audio, sampleRate: 48_000, channels: 2 }) as unknown as SourceTrack;
  const options = {
    ...{ source, transcoder, address: ADDRESS, onSlow: () => (slow += 1) },
    conversions: (tracks: readonly SourceTrack[]) => tracks.flatMap((track) => conversionOf(track, announced(track.type)) ?? []),
  };
  return { conformed: new ConformedSource(options), slow: () => slow };
}

async function open(position = 0): Promise<FileSource> {
  const root = new MediaRoot(folder, new AllowedFolders(null, ''));
  const { signal } = new AbortController();
  const opening = { position, signal, onSlow: () => undefined };
  return await FileSource.open('file://film.mp4', { root, foreign: null, logger: new RecordingLogger(), ...opening });
}

async function readAll(source: ItemSource) {
  const tracks: SourceTrack[] = [];
  const times = new Map<number, number[]>();
  let last = Number.NEGATIVE_INFINITY;
  let disorder = 0;
  for (let event = await source.next(); event !== null; event = await source.next()) {
    if (event.type === 'tracks') {
      tracks.splice(0, tracks.length, ...event.tracks);
      continue;
    }
    const { packet, timebase } = event;
    const dts = toSeconds(packet.dts, timebase);
    if (dts < last - 0.0001) disorder += 1;
    last = dts;
    times.set(packet.trackId, [...(times.get(packet.trackId) ?? []), toSeconds(packet.pts, timebase) - source.start]);
  }
  const of = (type: SourceTrack['type']): number[] => times.get(tracks.find((track) => track.type === type)?.id ?? -1) ?? [];
  return { tracks, disorder, video: of('video').sort((a, b) => a - b), audio: of('audio') };
}

/** When the frames of the film are shown. */
async function readWhole(position: number): Promise<number[]> {
  const source = await open(position);
  const { video } = await readAll(source);
  source.close();
  return video;
}

it('has every frame in another codec at its time, and its audio in sync', async () => {
  const film = conformed(await open(), AAC_AND_H264, supervisor);
  const { tracks, disorder, video, audio } = await readAll(film.conformed);
  expect(tracks).toMatchObject([
    { id: 0, type: 'video', codec: VideoCodec.H264, width: 160, height: 90 },
    { id: 1, type: 'audio', codec: AudioCodec.AAC, sampleRate: 48_000, channels: 2 },
  ]);
  expect([disorder, film.slow()]).toEqual([0, 1]);
  const original = await readWhole(0);
  expect(video.map((at) => Math.round(at * 24))).toEqual(original.map((at) => Math.round(at * 24)));
  expect(video.length).toBeGreaterThan(95);
  expect(Math.abs(audio[0]!)).toBeLessThan(0.03);
  expect(audio.at(-1)! + 1024 / 48_000).toBeGreaterThan(4.07);
  for (let index = 1; index < audio.length; index += 1) expect(audio[index]! - audio[index - 1]!).toBeCloseTo(1024 / 48_000, 3);
  film.conformed.close();
}, 60_000);

it('is joined at a keyframe, and tracks with the codec of the channel pass unchanged', async () => {
  const film = conformed(await open(2600), { video: VideoCodec.H264, audio: AudioCodec.OPUS }, supervisor);
  const { tracks, disorder, video, audio } = await readAll(film.conformed);
  expect(tracks).toMatchObject([{ codec: VideoCodec.H264 }, { codec: AudioCodec.OPUS }]);
  expect([disorder, video[0]]).toEqual([0, expect.closeTo(2, 2)]);
  // Frames that lead the keyframe need the frames before it.
  const original = await readWhole(2600);
  expect(video.length).toBe(original.filter((at) => at > 1.99).length);
  expect(audio.at(-1)).toBeGreaterThan(4);
  film.conformed.close();
}, 60_000);

const films = (options: FilmOptions): Promise<ItemSource> => new FilmSources({ film: options }).open('file://film', { position: 0 });

it('fails when it needs a transcoder and there is none, and plays when it needs none', async () => {
  const unsupported = conformed(await films({ seconds: 1, videoCodec: VideoCodec.VP8 }), AAC_AND_H264, null);
  await expect(unsupported.conformed.next()).rejects.toThrow('its video is VP8, the channel has H264, and nothing is transcoded here');
  const plain = conformed(await films({ seconds: 1 }), AAC_AND_H264, null);
  expect((await readAll(plain.conformed)).video.length).toBe(25);
  expect(plain.slow()).toBe(0);
});

it('fails with its encoder, and reads no further than the encoder follows', async () => {
  const transcoder = new FakeTranscoder();
  transcoder.echo = false;
  const film = conformed(await films({ seconds: 100, videoCodec: VideoCodec.VP8 }), AAC_AND_H264, transcoder);
  const first = film.conformed.next();
  let pushed = -1;
  while (pushed !== transcoder.sessions[0]?.pushed.length) {
    pushed = transcoder.sessions[0]?.pushed.length ?? -1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(pushed).toBeLessThan(60);
  // It is not late however long the encoder takes: a busy machine would lose frames of the film, and its end.
  expect(transcoder.session.job.readAhead).toBe(true);
  transcoder.session.fail(transcoder.session.job.encodes[0]!.id, 'there is no such encoder');
  await expect(first).rejects.toThrow('it cannot be converted: there is no such encoder');
  expect(transcoder.session.closed).toBe(true);
  film.conformed.close();
  film.conformed.close();
  expect(await film.conformed.next()).toBe(null);
});

it('reads at most some thousand packets while the timestamps of bypassed packets stand still', async () => {
  const transcoder = new FakeTranscoder();
  transcoder.echo = false;
  const source = await films({ seconds: 100, videoCodec: VideoCodec.VP8 });
  const sound = new Set<number>();
  let read = 0;
  const still: ItemSource = {
    ...source,
    next: async () => {
      const event = await source.next();
      if (event?.type === 'tracks') for (const { id, type } of event.tracks) if (type === 'audio') sound.add(id);
      if (event?.type !== 'packet') return event;
      // Sound without end behind the first frame.
      read += 1;
      if (read === 1) return event;
      if (read > 50_000) throw new Error('it is read without end');
      const [trackId = 0] = sound;
      return { ...event, packet: { ...event.packet, trackId, pts: 1, dts: 1 }, timebase: { num: 1, den: 1000 } };
    },
  };
  const film = conformed(still, AAC_AND_H264, transcoder);
  const first = film.conformed.next();
  for (let before = -1; before !== read; ) {
    before = read;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(read).toBeGreaterThan(100);
  expect(read).toBeLessThan(4100);
  film.conformed.close();
  expect(await first).toBe(null);
});
