import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { FakeStream } from '../../../test/fakes/fake-stream.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { dataTrack, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { type EncodedMedia, encodeMedia } from '../../../test/support/encoded-media.ts';
import type { PublisherStream } from '../../core/publishing.ts';
import { VideoCodec } from '../../media/codec.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { DocumentFolder } from '../../state/document-folder.ts';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { MOST_TASKS } from '../tasks/task-registry.ts';
import { FilePublisher } from './file-publisher.ts';
import type { FileSettings } from './record-place.ts';
import type { RecordRequest } from './record-request.ts';

let sample: EncodedMedia;
let folder: string;
let root: string;
let clock: ManualClock;
let logger: RecordingLogger;
let publisher: FilePublisher;
let settings: FileSettings;

beforeAll(() => {
  const extra = ['-x264-params', 'scenecut=0:bframes=2:b-adapt=0'];
  sample = encodeMedia({ seconds: 6, video: 'libx264', audio: 'aac', rate: 25, gop: 25, extra });
});

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-files-'));
  root = join(folder, 'root');
  settings = { rootPath: root, filePath: '/${Id}_${Sequence}.mp4', infoPath: '/info.xml' };
  clock = new ManualClock();
  logger = new RecordingLogger();
  publisher = await start();
});
afterEach(async () => {
  await publisher.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A publisher on the state folder, as a process would start it. */
async function start(allowed = new AllowedFolders(null, 'the setting')): Promise<FilePublisher> {
  const made = new FilePublisher({ clock, logger, stateFolder: join(folder, 'state'), allowed });
  await made.start();
  return made;
}

const owner = () => ({ vhost: 'default', app: 'app', settings });

function wish(id: string, more: Partial<RecordRequest> = {}): RecordRequest {
  return {
    ...{ id, streamName: 'stream', trackIds: [], variantNames: [], interval: 0, schedule: '', segmentationRule: 'discontinuity' },
    ...{ filePath: '', infoPath: '', metadata: '', isConfig: false },
    ...more,
  };
}

function open(tracks: readonly Track[] = sample.tracks): { stream: FakeStream; attached: PublisherStream } {
  const stream = new FakeStream();
  const attached = publisher.attach(stream, settings);
  stream.tracks = [...tracks, dataTrack(9)];
  attached.onTracks(stream.tracks);
  return { stream, attached };
}

/** Sends packets, the clock going with them. */
function send(attached: PublisherStream, packets: readonly Packet[]): void {
  let last = 0;
  for (const packet of packets) {
    const at = (packet.dts * 1000) / packet.track.timebase.den;
    if (at > last) clock.advance(at - last);
    last = Math.max(last, at);
    attached.onPacket(packet);
  }
  attached.onDrained?.();
}

const CLOSED = { code: 'peer-left', detail: 'gone' } as const;

interface Probed {
  readonly video: number[];
  readonly audio: number[];
}

/** Presentation times of all frames, seconds. */
function probe(path: string): Probed {
  const args = ['-v', 'error', '-of', 'json', '-show_frames', '-show_entries', 'frame=media_type,pts_time', path];
  const { frames } = JSON.parse(execFileSync('ffprobe', args, { encoding: 'utf8' })) as {
    frames: { media_type: string; pts_time: string }[];
  };
  const timesOf = (type: string): number[] => frames.filter((frame) => frame.media_type === type).map((frame) => Number(frame.pts_time));
  return { video: timesOf('video'), audio: timesOf('audio') };
}

const rootFiles = (): string[] =>
  readdirSync(root)
    .filter((name) => !name.endsWith('.xml'))
    .sort();

describe('a recording', () => {
  it.each(['mp4', 'ts'])('into %s holds every frame of a stream, and its figures are true', async (extension) => {
    await publisher.startRecord(owner(), wish('a', { filePath: `/deep/\${Id}.${extension}`, metadata: 'm' }));
    const { attached, stream } = open();
    expect(stream.viewers).toBe(1);
    send(attached, sample.packets);
    const running = publisher.records(owner())[0];
    expect(running).toMatchObject({
      state: 'recording',
      outputFilePath: `/deep/a.${extension}`,
      outputInfoPath: '/info.xml',
      isConfig: false,
    });
    expect(running?.recordTime).toBeGreaterThan(5900);
    expect(await publisher.stopRecord(owner(), 'a')).toMatchObject({ state: 'stopping', recordTime: running?.recordTime });
    expect(publisher.records(owner())).toEqual([]);
    expect(stream.viewers).toBe(0);
    await publisher.stop();
    const { video, audio } = probe(join(root, `deep/a.${extension}`));
    expect(video).toHaveLength(150);
    expect(Math.abs((video[0] ?? 9) - (audio[0] ?? 0))).toBeLessThan(0.04);
    expect(readdirSync(join(root, 'deep'))).toEqual([`a.${extension}`]);
    expect(readdirSync(join(folder, 'state/records/open'))).toEqual([]);
    expect(readFileSync(join(root, 'info.xml'), 'utf8')).toMatch(/<metadata>m<\/metadata>[\s\S]*<lastSequence>true</);
  });

  it.each([
    ['discontinuity', false],
    ['continuity', true],
  ] as const)('split by interval (%s) loses nothing between the files', async (segmentationRule, goesOn) => {
    await publisher.startRecord(owner(), wish('s', { interval: 2000, segmentationRule }));
    const { attached } = open();
    send(attached, sample.packets);
    expect(publisher.records(owner())[0]).toMatchObject({ sequence: 2, outputFilePath: '/s_2.mp4' });
    await publisher.stopRecord(owner(), 's');
    await publisher.stop();
    expect(rootFiles()).toEqual(['s_0.mp4', 's_1.mp4', 's_2.mp4']);
    const parts = rootFiles().map((name) => probe(join(root, name)));
    expect(parts.map(({ video }) => video.length)).toEqual([50, 50, 50]);
    const whole = sample.packets.filter(({ track }) => track.type === 'audio').length;
    const audio = parts.reduce((sum, part) => sum + part.audio.length, 0);
    // Frames before the first picture are not recorded.
    expect(audio).toBeGreaterThanOrEqual(whole - 6);
    expect(audio).toBeLessThanOrEqual(whole);
    for (const [index, { video, audio: sound }] of parts.entries()) {
      const from = goesOn ? index * 2 : 0;
      expect(video[0]).toBeCloseTo(from, 2);
      expect(Math.abs((sound[0] ?? 9) - from)).toBeLessThan(0.03);
      expect(sound.at(-1)).toBeGreaterThan(from + 1.93);
    }
    const info = readFileSync(join(root, 'info.xml'), 'utf8');
    expect([...info.matchAll(/<lastSequence>(\w+)</g)].map(([, last]) => last)).toEqual(['false', 'false', 'true']);
  });

  it('that is split has the end of the old file on disk while sound for it is still awaited', async () => {
    await publisher.startRecord(owner(), wish('s', { interval: 2000 }));
    const { attached } = open();
    const cut = sample.packets.findIndex(({ track, keyframe, pts }) => track.type === 'video' && keyframe && pts >= 2 * 90_000);
    // Sound is a second late, so that the old file has to wait for it.
    const soon = sample.packets.slice(0, cut + 1).filter(({ track, pts }) => track.type === 'video' || pts < 48_000);
    send(attached, soon);
    const videoOf = (name: string): number => {
      const args = ['-v', 'quiet', '-count_packets', '-select_streams', 'v', '-show_entries', 'stream=nb_read_packets', '-of', 'csv=p=0'];
      return Number.parseInt(execFileSync('ffprobe', [...args, join(root, name)], { encoding: 'utf8' }), 10) || 0;
    };
    await expect.poll(() => readdirSync(root).filter((name) => statSync(join(root, name)).size > 0)).toHaveLength(2);
    expect(readdirSync(root).every((name) => name.startsWith('tmp_'))).toBe(true);
    await expect.poll(() => Math.max(...readdirSync(root).map(videoOf))).toBe(50);
  });

  it('with two pictures whose keyframes differ loses no frame of either at a split', async () => {
    const [main] = sample.tracks.filter(({ type }) => type === 'video');
    if (main?.type !== 'video') throw new Error('no picture');
    const second = { ...main, id: 5, variantName: 'other' };
    // The same pictures 0.4 s later: their keyframes come 0.4 s after those of the first.
    const late = sample.packets
      .filter(({ track }) => track === main)
      .map((packet) => ({ ...packet, track: second, pts: packet.pts + 36_000, dts: packet.dts + 36_000 }));
    const packets = [...sample.packets, ...late].sort((a, b) => a.dts / a.track.timebase.den - b.dts / b.track.timebase.den);
    await publisher.startRecord(owner(), wish('two', { interval: 2000 }));
    const { attached } = open([...sample.tracks, second]);
    send(attached, packets);
    await publisher.stopRecord(owner(), 'two');
    await publisher.stop();
    const counts = rootFiles().map((name) => {
      const args = [
        '-v',
        'error',
        '-of',
        'csv=p=0',
        '-count_packets',
        '-show_entries',
        'stream=codec_type,nb_read_packets',
        join(root, name),
      ];
      const lines = execFileSync('ffprobe', args, { encoding: 'utf8' }).trim().split('\n');
      return lines.filter((line) => line.startsWith('video')).map((line) => Number(line.split(',')[1]));
    });
    expect(counts).toEqual([
      [50, 50],
      [50, 50],
      [50, 50],
    ]);
  });

  it('split by schedule begins a file at the first keyframe after the moment', async () => {
    // The keyframe shown at 3 s is decoded, and so arrives, a little before the third second.
    await publisher.startRecord(owner(), wish('c', { schedule: '*/3 * *' }));
    const { attached } = open();
    send(attached, sample.packets);
    await publisher.stopRecord(owner(), 'c');
    await publisher.stop();
    expect(rootFiles().map((name) => probe(join(root, name)).video.length)).toEqual([100, 50]);
  });

  it('waits for its stream, goes back to ready when it ends and goes on with the next', async () => {
    expect(await publisher.startRecord(owner(), wish('r'))).toMatchObject({ state: 'ready' });
    for (const run of [0, 1]) {
      const { attached } = open();
      expect(publisher.records(owner())[0]).toMatchObject({ state: 'recording', outputFilePath: `/r_${run}.mp4` });
      send(attached, sample.packets);
      attached.close(CLOSED);
      attached.close(CLOSED);
      expect(publisher.records(owner())[0]).toMatchObject({ state: 'ready' });
    }
    await publisher.stop();
    expect(rootFiles()).toEqual(['r_0.mp4', 'r_1.mp4']);
    expect(probe(join(root, 'r_1.mp4')).video).toHaveLength(150);
  });

  it('has its stream attended to until it is stopped: a kill may come at any time', async () => {
    const { attached, stream } = open();
    expect([attached.attended, stream.comings]).toEqual([false, 0]);
    await publisher.startRecord(owner(), wish('a'));
    expect([attached.attended, stream.comings]).toEqual([true, 1]);
    await publisher.stopRecord(owner(), 'a');
    attached.onDrained?.();
    expect(attached.attended).toBe(false);
  });

  it('takes only the tracks that were asked for', async () => {
    await publisher.startRecord(owner(), wish('v', { variantNames: ['video'] }));
    await publisher.startRecord(owner(), wish('n', { trackIds: [1], filePath: '/n.ts' }));
    const { attached } = open();
    send(attached, sample.packets);
    await publisher.stopRecord(owner(), 'v');
    await publisher.stopRecord(owner(), 'n');
    await publisher.stop();
    expect(probe(join(root, 'v_0.mp4'))).toMatchObject({ audio: [] });
    const { video, audio } = probe(join(root, 'n.ts'));
    expect([video.length, audio.length > 270]).toEqual([0, true]);
  });

  it('never replaces a file', async () => {
    mkdirSync(root);
    writeFileSync(join(root, 'x.mp4'), 'precious');
    for (const id of ['1', '2']) await publisher.startRecord(owner(), wish(id, { filePath: '/x.mp4' }));
    const { attached } = open();
    send(attached, sample.packets);
    attached.close(CLOSED);
    await publisher.stop();
    expect(rootFiles()).toEqual(['x.mp4', 'x_1.mp4', 'x_2.mp4']);
    expect(readFileSync(join(root, 'x.mp4'), 'utf8')).toBe('precious');
    expect(probe(join(root, 'x_2.mp4')).video).toHaveLength(150);
  });

  it('goes on in a new file when the parameters of a track change', async () => {
    const other = encodeMedia({ seconds: 2, video: 'libx264', audio: 'aac', rate: 25, gop: 25, size: '160x90' });
    await publisher.startRecord(owner(), wish('p'));
    const { attached } = open();
    send(attached, sample.packets);
    const moved = other.packets.map((packet) => ({
      ...packet,
      dts: packet.dts + 6 * packet.track.timebase.den,
      pts: packet.pts + 6 * packet.track.timebase.den,
    }));
    attached.onTracks([...other.tracks, dataTrack(9)]);
    send(attached, moved);
    await publisher.stopRecord(owner(), 'p');
    await publisher.stop();
    expect(rootFiles().map((name) => probe(join(root, name)).video.length)).toEqual([150, 50]);
  });

  it('holds HEVC and Opus', async () => {
    const modern = encodeMedia({ seconds: 2, video: 'libx265', audio: 'libopus', rate: 25, gop: 25 });
    await publisher.startRecord(owner(), wish('m'));
    await publisher.startRecord(owner(), wish('t', { filePath: '/t.ts' }));
    const { attached } = open(modern.tracks);
    send(attached, modern.packets);
    attached.close(CLOSED);
    await publisher.stop();
    for (const name of ['m_0.mp4', 't.ts']) {
      const { video, audio } = probe(join(root, name));
      expect([video.length, audio.length > 90], name).toEqual([50, true]);
    }
  });
});

const PICTURES = [
  ['H264', 'libx264'],
  ['H265', 'libx265'],
  ['VP9', 'libvpx-vp9'],
  ['AV1', 'libaom-av1'],
  ['VP8', null],
] as const;
const SOUNDS = [
  ['AAC', 'aac'],
  ['MP3', 'libmp3lame'],
  ['OPUS', 'libopus'],
] as const;

describe('a container', () => {
  const fast = ['-cpu-used', '8'];
  const made = new Map<string, EncodedMedia>();
  beforeAll(() => {
    for (const [codec, encoder] of PICTURES) {
      if (encoder === null) continue;
      const extra = encoder.startsWith('lib') && !encoder.startsWith('libx') ? fast : [];
      made.set(codec, encodeMedia({ seconds: 1, video: encoder, audio: null, size: '160x90', rate: 10, gop: 10, extra }));
    }
    for (const [codec, encoder] of SOUNDS) made.set(codec, encodeMedia({ seconds: 1, video: null, audio: encoder }));
  });

  /** Tracks and packets of a codec; VP8, which this ffmpeg writes into no MP4, is refused before its bytes matter. */
  const mediaOf = (codec: string): Pick<EncodedMedia, 'tracks' | 'packets'> => {
    const media = made.get(codec);
    if (media !== undefined) return media;
    const track = { ...videoTrack({ config: null }), codec: VideoCodec.VP8 };
    return { tracks: [track], packets: [] };
  };

  const streamOf = (file: string): string => {
    const args = ['-v', 'error', '-of', 'csv=p=0', '-count_packets', '-show_entries', 'stream=codec_name,nb_read_packets'];
    return (
      execFileSync('ffprobe', [...args, join(root, file)], { encoding: 'utf8' })
        .trim()
        .split('\n')[0] ?? ''
    );
  };

  it.each([
    ...(['H264', 'H265', 'VP9', 'AV1', 'AAC', 'MP3', 'OPUS'] as const).map((codec) => ['mp4', codec] as const),
    ...(['H264', 'H265', 'AAC', 'MP3', 'OPUS'] as const).map((codec) => ['ts', codec] as const),
  ])('%s holds %s', async (extension, codec) => {
    const { tracks, packets } = mediaOf(codec);
    const { attached } = open(tracks);
    expect(await publisher.startRecord(owner(), wish('c', { filePath: `/c.${extension}` }))).toMatchObject({ state: 'recording' });
    send(attached, packets);
    attached.close(CLOSED);
    await publisher.stop();
    const [name, count] = streamOf(`c.${extension}`).split(',');
    expect(name?.toUpperCase().replace('HEVC', 'H265')).toBe(codec);
    expect(Number(count)).toBe(packets.length);
  });

  it.each([
    ['mp4', 'VP8'],
    ['ts', 'VP8'],
    ['ts', 'VP9'],
    ['ts', 'AV1'],
  ])('%s refuses %s, alone and beside sound, and says so', async (extension, codec) => {
    const { tracks } = mediaOf(codec);
    const { tracks: sound } = mediaOf('AAC');
    const reason = `${extension.toUpperCase()} cannot hold Video_0 (${codec})`;
    const { attached } = open([...tracks, ...sound]);
    expect(await publisher.startRecord(owner(), wish('both', { filePath: `/b.${extension}` }))).toMatchObject({ state: 'error', reason });
    // Whoever wants the sound alone asks for it.
    const alone = wish('sound', { filePath: `/s.${extension}`, variantNames: ['audio'] });
    expect(await publisher.startRecord(owner(), alone)).toMatchObject({ state: 'recording' });
    attached.close(CLOSED);
    open(tracks);
    expect(await publisher.startRecord(owner(), wish('one', { filePath: `/o.${extension}` }))).toMatchObject({
      state: 'error',
      reason: `no track fits into ${extension.toUpperCase()}: it cannot hold Video_0 (${codec})`,
    });
    await publisher.stop();
    expect(existsSync(root) ? rootFiles() : []).toEqual([]);
  });
});

describe('a recording that cannot go on', () => {
  it.each([
    [{ variantNames: ['nope'] }, /no track has the ids or names/],
    [{ trackIds: [77] }, /no track has the ids or names/],
  ])('says so when no track fits: %j', async (more, reason) => {
    open();
    expect(await publisher.startRecord(owner(), wish('e', more))).toMatchObject({ state: 'error', reason: expect.stringMatching(reason) });
    expect(publisher.records(owner())).toHaveLength(1);
  });

  it('leaves out with a warning what the container cannot hold, and says when nothing is left', async () => {
    const av1 = encodeMedia({ seconds: 1, video: 'libaom-av1', audio: 'aac', rate: 10, gop: 10, extra: ['-cpu-used', '8'] });
    const plain = { ...videoTrack(), id: 7, publicName: 'Video_7', variantName: 'plain' };
    open([...av1.tracks, plain]);
    expect(await publisher.startRecord(owner(), wish('w', { filePath: '/w.ts' }))).toMatchObject({ state: 'recording' });
    expect(logger.lines.some(({ level, message }) => level === 'warn' && message.includes('TS cannot hold Video_0 (AV1)'))).toBe(true);
    expect(await publisher.startRecord(owner(), wish('f', { filePath: '/f.ts', variantNames: ['video'] }))).toMatchObject({
      state: 'error',
      reason: 'TS cannot hold Video_0 (AV1)',
    });
    // Sound alone would not be what was asked for.
    expect(await publisher.startRecord(owner(), wish('n', { filePath: '/n.ts', variantNames: ['video', 'audio'] }))).toMatchObject({
      state: 'error',
      reason: 'TS cannot hold Video_0 (AV1)',
    });
    open(av1.tracks.filter(({ type }) => type === 'video'));
    expect(await publisher.startRecord(owner(), wish('o', { filePath: '/o.ts' }))).toMatchObject({
      state: 'error',
      reason: 'no track fits into TS: it cannot hold Video_0 (AV1)',
    });
  });

  it('tells why the file cannot be made; others are untouched, and the next stream tries again', async () => {
    mkdirSync(root);
    writeFileSync(join(root, 'file'), '');
    await publisher.startRecord(owner(), wish('bad', { filePath: '/file/x.ts' }));
    await publisher.startRecord(owner(), wish('good'));
    const { attached } = open();
    send(attached, sample.packets.slice(0, 100));
    await expect.poll(() => publisher.records(owner(), 'bad')[0]?.state).toBe('error');
    expect(publisher.records(owner(), 'bad')[0]?.reason).toMatch(/ENOTDIR|EEXIST/);
    send(attached, sample.packets.slice(100));
    attached.close(CLOSED);
    rmSync(join(root, 'file'));
    expect(publisher.records(owner()).map(({ state }) => state)).toEqual(['error', 'ready']);
    const again = open();
    send(again.attached, sample.packets);
    again.attached.close(CLOSED);
    await publisher.stop();
    expect(probe(join(root, 'good_0.mp4')).video).toHaveLength(150);
    expect(probe(join(root, 'file/x.ts')).video).toHaveLength(150);
  });
});

describe('a recording whose name found no room', () => {
  it('gets it in the running server, and is counted once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await publisher.startRecord(owner(), wish('a'));
    const { attached } = open();
    send(attached, sample.packets);
    await expect.poll(() => rootFiles()).toHaveLength(1);
    const full = vi
      .spyOn(AllowedFolders.prototype, 'makeFolder')
      .mockRejectedValue(Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }));
    attached.close(CLOSED);
    await expect.poll(() => logger.lines.some(({ message }) => message.includes('it is tried again later: ENOSPC'))).toBe(true);
    full.mockRestore();
    expect(rootFiles()[0]).toMatch(/^tmp_/);
    open();
    const [waiting] = publisher.records(owner());
    expect(waiting?.totalRecordBytes).toBeGreaterThan(0);
    vi.advanceTimersByTime(5000);
    await expect.poll(() => readdirSync(join(folder, 'state/records/open'))).toEqual([]);
    expect(rootFiles()).toEqual(['a_0.mp4']);
    const { totalRecordTime } = waiting ?? {};
    expect(publisher.records(owner())[0]).toMatchObject({ totalRecordBytes: namedBytes(), totalRecordTime });
  });
});

describe('a bug in one recording', () => {
  it.each(['mp4', 'ts'])('ends that one only, and tells why (%s)', async (extension) => {
    const [main] = sample.tracks.filter(({ type }) => type === 'video');
    if (main?.type !== 'video') throw new Error('no picture');
    const strange = { ...main, id: 5, variantName: 'strange' };
    await publisher.startRecord(owner(), wish('bad', { filePath: `/bad.${extension}`, trackIds: [5] }));
    await publisher.startRecord(owner(), wish('good', { variantNames: ['video'] }));
    const { attached } = open([...sample.tracks, strange]);
    const before: Packet[] = sample.packets.filter(({ track }) => track === main).map((packet) => ({ ...packet, track: strange }));
    send(attached, before.slice(0, 50));
    const broken: Packet = {
      ...{ track: strange, pts: 9e6, dts: 9e6, duration: 3000, keyframe: true },
      get data(): Uint8Array {
        throw new RangeError('section of 190 bytes does not fit one packet');
      },
    };
    attached.onPacket(broken);
    expect(publisher.records(owner()).map(({ id, state }) => `${id} ${state}`)).toEqual(['bad error', 'good recording']);
    expect(publisher.records(owner(), 'bad')[0]?.reason).toBe('section of 190 bytes does not fit one packet');
    expect(logger.lines.some(({ level, fields }) => level === 'error' && fields['err'] instanceof RangeError)).toBe(true);
    send(attached, sample.packets);
    attached.close(CLOSED);
    await publisher.stop();
    expect(probe(join(root, 'good_0.mp4')).video).toHaveLength(150);
    expect(probe(join(root, `bad.${extension}`)).video).toHaveLength(50);
  });
});

describe('paths', () => {
  it.each(['/../x.ts', 'a/../../x.ts', '/a\0.ts', '/${Id}/..'])('%j is refused', async (filePath) => {
    await expect(publisher.startRecord(owner(), wish('x', { filePath }))).rejects.toMatchObject({ name: 'PathRefused' });
    await expect(publisher.startRecord(owner(), wish('x', { infoPath: filePath }))).rejects.toMatchObject({ name: 'PathRefused' });
    expect(publisher.records(owner())).toEqual([]);
  });

  it.each(['/x.webm', '/${Id}.WebM'])('%s is refused, for WebM is not written', async (filePath) => {
    await expect(publisher.startRecord(owner(), wish('x', { filePath }))).rejects.toThrow(
      'asks for WebM, which is not written: use .mp4 or .ts',
    );
    settings = { rootPath: root, filePath };
    await expect(publisher.startRecord(owner(), wish('x'))).rejects.toMatchObject({ name: 'PathRefused' });
    expect(publisher.records(owner())).toEqual([]);
  });

  it('may not leave the root through a link, also one that comes later', async () => {
    mkdirSync(root);
    mkdirSync(join(folder, 'outside'));
    symlinkSync(join(folder, 'outside'), join(root, 'link'));
    await expect(publisher.startRecord(owner(), wish('x', { filePath: '/link/x.ts' }))).rejects.toThrow(/symbolic link/);
    await publisher.startRecord(owner(), wish('late', { filePath: '/late/x.ts' }));
    symlinkSync(join(folder, 'outside'), join(root, 'late'));
    const { attached } = open();
    send(attached, sample.packets);
    await expect.poll(() => publisher.records(owner())[0]?.reason).toMatch(/symbolic link/);
    expect(readdirSync(join(folder, 'outside'))).toEqual([]);
  });

  it('must lie in the allowed folders, which the refusal names', async () => {
    publisher = await start(new AllowedFolders([join(folder, 'state/recordings')], 'Server/Storage/AllowedRoots'));
    await expect(publisher.startRecord(owner(), wish('x'))).rejects.toThrow('Server/Storage/AllowedRoots');
    settings = {};
    await expect(publisher.startRecord(owner(), wish('x', { filePath: '/etc/x.ts' }))).rejects.toThrow('Server/Storage/AllowedRoots');
    await publisher.startRecord(owner(), wish('x'));
    const { attached } = open();
    send(attached, sample.packets);
    attached.close(CLOSED);
    await publisher.stop();
    const names = readdirSync(join(folder, 'state/recordings'));
    expect(names.some((name) => /^\w{16}_default_app_stream_\d{14}_\d{14}\.ts$/.test(name))).toBe(true);
  });
});

describe('tasks', () => {
  it('have ids of their own in each application, and there is an end to them', async () => {
    await publisher.startRecord(owner(), wish('a'));
    await expect(publisher.startRecord(owner(), wish('a'))).rejects.toMatchObject({ code: 'duplicate' });
    await publisher.startRecord({ ...owner(), app: 'other' }, wish('a'));
    const many = Array.from({ length: MOST_TASKS - 1 }, (_, index) => publisher.startRecord(owner(), wish(`m${index}`)));
    await Promise.all(many);
    await expect(publisher.startRecord(owner(), wish('more'))).rejects.toMatchObject({ code: 'too-many' });
    expect(await publisher.stopRecord(owner(), 'nope')).toBeNull();
  });

  it('survive a restart with their totals, unless they were stopped or their application was deleted', async () => {
    await publisher.startRecord(owner(), wish('b', { interval: 5000, metadata: 'kept' }));
    await publisher.startRecord(owner(), wish('a'));
    await publisher.startRecord(owner(), wish('gone'));
    await publisher.startRecord({ ...owner(), app: 'deleted' }, wish('a'));
    const { attached } = open();
    send(attached, sample.packets);
    attached.close(CLOSED);
    await publisher.stopRecord(owner(), 'gone');
    publisher.forgetApplication('default', 'deleted');
    const before = publisher.records(owner());
    await publisher.stop();
    publisher = await start();
    expect(publisher.records(owner())).toMatchObject(before.map(({ id, createdTime }) => ({ id, createdTime, state: 'ready' })));
    expect(publisher.records({ ...owner(), app: 'deleted' })).toEqual([]);
    expect(publisher.records(owner(), 'b')[0]).toMatchObject({ interval: 5000, metadata: 'kept' });
    open();
    expect(publisher.records(owner(), 'b')[0]).toMatchObject({ sequence: 2, outputFilePath: '/b_2.mp4' });
  });

  it('that cannot be saved are refused', async () => {
    rmSync(join(folder, 'state'), { recursive: true });
    await expect(publisher.startRecord(owner(), wish('a'))).rejects.toMatchObject({ code: 'not-durable' });
    expect(publisher.records(owner())).toEqual([]);
  });

  it('are made by a map file for the streams it names and vanish with them', async () => {
    const map = join(folder, 'map.xml');
    const entry = (name: string, more = '') =>
      `<Record><Enable>true</Enable><StreamName>${name}</StreamName><FilePath>/${'${Stream}'}_${'${SourceStream}'}.ts</FilePath>${more}</Record>`;
    writeFileSync(map, `<RecordInfo>${entry('str*')}${entry('other')}<Record><StreamName>*</StreamName></Record></RecordInfo>`);
    settings = { ...settings, streamMap: { enable: true, path: map } };
    const { attached } = open();
    // The file has not been read yet.
    send(attached, sample.packets.slice(0, 100));
    await expect.poll(() => publisher.records(owner())).toHaveLength(1);
    expect(publisher.records(owner())[0]).toMatchObject({ isConfig: true, state: 'recording', id: expect.stringMatching(/^\w{16}$/) });
    send(attached, sample.packets.slice(100));
    attached.close(CLOSED);
    expect(publisher.records(owner())).toEqual([]);
    await publisher.stop();
    expect(rootFiles()).toEqual(['stream_source.ts']);
    expect(probe(join(root, 'stream_source.ts')).video).toHaveLength(150);
    writeFileSync(map, `<RecordInfo>${entry('s', '<SegmentInterval>x</SegmentInterval>')}</RecordInfo>`);
    open();
    await expect.poll(() => logger.lines.some(({ message }) => message.includes('Record/SegmentInterval must be'))).toBe(true);
  });
});

/** Bytes of the files that have their names. */
const namedBytes = (): number =>
  rootFiles()
    .filter((name) => !name.startsWith('tmp_'))
    .reduce((sum, name) => sum + statSync(join(root, name)).size, 0);

/** Two files have their names, the third is open, and the disk knows all that. */
async function thirdFileOpen(): Promise<void> {
  await expect.poll(() => (existsSync(root) ? rootFiles().filter((name) => !name.startsWith('tmp_')).length : 0)).toBe(2);
  await expect.poll(() => readdirSync(join(folder, 'state/records/open'))).toHaveLength(1);
  const tasks = join(folder, 'state/records/tasks');
  const stored = (): unknown => JSON.parse(readFileSync(join(tasks, readdirSync(tasks)[0] ?? ''), 'utf8'));
  await expect.poll(stored).toMatchObject({ value: { totals: { bytes: namedBytes() } } });
}

describe('after a kill', () => {
  it.each(['mp4', 'ts'])('the next start finishes what lies there (%s)', async (extension) => {
    await publisher.startRecord(owner(), wish('k', { filePath: `/k_\${EndTime:YYYY}.${extension}` }));
    const { attached } = open();
    send(attached, sample.packets);
    // Nothing is closed: this publisher is as good as dead, and what it had not written is lost.
    await expect.poll(() => (existsSync(root) ? rootFiles().length : 0)).toBe(1);
    expect(rootFiles()[0]).toMatch(/^tmp_\w{32}$/);
    const dead = publisher;
    publisher = await start();
    await publisher.recovered;
    const [name = ''] = rootFiles();
    expect(name).toMatch(new RegExp(`^k_20\\d\\d\\.${extension}$`));
    expect(probe(join(root, name)).video.length).toBeGreaterThan(90);
    expect(readdirSync(join(folder, 'state/records/open'))).toEqual([]);
    expect(readFileSync(join(root, 'info.xml'), 'utf8')).toContain('<id>k</id>');
    expect(publisher.records(owner())[0]).toMatchObject({ id: 'k', state: 'ready' });
    await dead.stopRecord(owner(), 'k');
  });

  it.each(['mp4', 'ts'])('figures and numbers go on as if nothing had happened (%s)', async (extension) => {
    await publisher.startRecord(owner(), wish('n', { interval: 2000, filePath: `/n_\${Sequence}.${extension}` }));
    const { attached } = open();
    send(attached, sample.packets);
    await thirdFileOpen();
    const dead = publisher;
    publisher = await start();
    await publisher.recovered;
    const names = [0, 1, 2].map((number) => `n_${number}.${extension}`);
    expect(rootFiles()).toEqual(names);
    const info = [...readFileSync(join(root, 'info.xml'), 'utf8').matchAll(/<file>[\s\S]*?<\/file>/g)].map(([text]) => ({
      bytes: Number(/<recordBytes>(\d+)/.exec(text)?.[1]),
      time: Number(/<recordTime>(\d+)/.exec(text)?.[1]),
      last: /<lastSequence>(\w+)/.exec(text)?.[1],
    }));
    expect(info.map(({ last }) => last)).toEqual(['false', 'false', 'true']);
    expect(info.map(({ bytes }) => bytes)).toEqual(names.map((name) => statSync(join(root, name)).size));
    const shown = probe(join(root, names[2] ?? ''));
    const frames = [...shown.video, ...shown.audio];
    expect(Math.abs((info[2]?.time ?? 0) - (Math.max(...frames) - Math.min(...frames)) * 1000)).toBeLessThan(80);
    open();
    expect(publisher.records(owner())[0]).toMatchObject({
      state: 'recording',
      sequence: 3,
      outputFilePath: `/n_3.${extension}`,
      totalRecordBytes: info.reduce((sum, { bytes }) => sum + bytes, 0),
      totalRecordTime: info.reduce((sum, { time }) => sum + time, 0),
    });
    await dead.stopRecord(owner(), 'n');
  });

  it.each(['totals', 'notes'])('between a file getting its name and the %s being written, the file is counted once', async (what) => {
    await publisher.startRecord(owner(), wish('n', { interval: 2000 }));
    const { attached } = open();
    // From here on the disk takes none of these: what it holds is what the next process finds.
    const { save } = DocumentFolder.prototype;
    const refusal = () => Promise.reject(new Error('the process is dead'));
    const totals = vi.spyOn(DocumentFolder.prototype, 'save').mockImplementation(function (this: DocumentFolder, key, value) {
      return what === 'totals' ? refusal() : save.call(this, key, value);
    });
    const notes = vi.spyOn(DocumentFolder.prototype, 'remove').mockImplementation(refusal);
    send(attached, sample.packets);
    attached.close(CLOSED);
    await publisher.stop();
    totals.mockRestore();
    notes.mockRestore();
    expect(readdirSync(join(folder, 'state/records/open'))).toHaveLength(3);
    for (let round = 0; round < 2; round += 1) {
      publisher = await start();
      await publisher.recovered;
    }
    expect(readdirSync(join(folder, 'state/records/open'))).toEqual([]);
    expect(rootFiles()).toEqual(['n_0.mp4', 'n_1.mp4', 'n_2.mp4']);
    expect(readFileSync(join(root, 'info.xml'), 'utf8').match(/<file>/g)).toHaveLength(3);
    open();
    expect(publisher.records(owner())[0]).toMatchObject({ sequence: 3, totalRecordBytes: namedBytes() });
  });

  it('a second kill, while the first is being cleared up, counts no file twice', async () => {
    await publisher.startRecord(owner(), wish('n', { interval: 2000 }));
    const { attached } = open();
    send(attached, sample.packets);
    await thirdFileOpen();
    const dead = publisher;
    for (let kill = 0; kill < 3; kill += 1) {
      publisher = await start();
      await publisher.recovered;
    }
    await publisher.stop();
    publisher = await start();
    open();
    expect(rootFiles()).toHaveLength(3);
    expect(publisher.records(owner())[0]).toMatchObject({ sequence: 3, totalRecordBytes: namedBytes() });
    await dead.stopRecord(owner(), 'n');
  });
});
