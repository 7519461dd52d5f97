import { afterEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { FakeOvtOrigin, type OvtScript } from '../../../test/fakes/ovt-origin.ts';
import { RecordingSink } from '../../../test/fakes/pull-sink.ts';
import { recordedOvt, replay } from '../../../test/fakes/recorded-ovt.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { ANNEXB, ASC, AVCC } from '../../../test/fixtures/bitstreams.ts';
import { writeAdtsHeader } from '../../codecs/aac/adts.ts';
import { parseAudioSpecificConfig } from '../../codecs/aac/audio-specific-config.ts';
import type { PullSession } from '../../core/pull.ts';
import { OvtPullSource } from './ovt-pull-source.ts';

const origins: FakeOvtOrigin[] = [];
const sessions: PullSession[] = [];
afterEach(async () => {
  for (const session of sessions.splice(0)) session.close();
  for (const origin of origins.splice(0)) await origin.stop();
});

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

/** A track as the reference describes it. */
function track(overrides: object): object {
  return {
    name: 'v',
    timebaseNum: 1,
    timebaseDen: 90_000,
    bitrate: 0,
    startFrameTime: 0,
    lastFrameTime: 0,
    videoTrack: { framerate: 30, width: 1280, height: 720 },
    audioTrack: { samplerate: 48_000, sampleFormat: 8, layout: 3 },
    ...overrides,
  };
}

const VIDEO = track({ id: 0, codecId: 1, mediaType: 0, decoderConfig: base64(AVCC.high720) });
const AUDIO = track({ id: 1, name: 'a', codecId: 7, mediaType: 1, timebaseDen: 48_000, decoderConfig: base64(ASC.plainStereo48) });

function contents(tracks: readonly object[] = [VIDEO, AUDIO], playlists: unknown = null): object {
  return { version: 18, stream: { appName: '#default#app', streamName: 'live', playlists, tracks } };
}

function playlist(fileName: string, renditions: readonly (readonly [string, string])[]): object {
  const named = renditions.map(([videoTrackName, audioTrackName]) => ({ name: 'r', videoTrackName, audioTrackName }));
  return { name: 'p', fileName, options: {}, renditions: named };
}

/** Describes the stream and plays it. */
function plays(described: object = contents()): OvtScript {
  return ({ command }) => (command === 'describe' ? { contents: described } : {});
}

async function serve(script: OvtScript = plays()): Promise<FakeOvtOrigin> {
  const origin = new FakeOvtOrigin(script);
  origins.push(origin);
  await origin.start();
  return origin;
}

async function open(origin: FakeOvtOrigin, limitMs = 10_000) {
  const sink = new RecordingSink();
  const logger = new RecordingLogger();
  const url = `ovt://user:secret@127.0.0.1:${origin.port}/app/live?token=1`;
  const target = { url, settings: {}, ignoreSenderReports: false, sink, signal: AbortSignal.timeout(limitMs), logger };
  const session = await new OvtPullSource(new ManualClock()).open(target);
  sessions.push(session);
  return { sink, session, logger };
}

/** An ADTS frame of `size` bytes. */
function adts(size: number): Buffer {
  const frame = Buffer.alloc(7 + size, size);
  writeAdtsHeader(frame, 0, parseAudioSpecificConfig(ASC.plainStereo48), size);
  return frame;
}

describe('OvtPullSource', () => {
  test('sends describe, play and stop without the password of the URL', async () => {
    const origin = await serve();
    const { session } = await open(origin);
    session.close();
    session.close();
    await origin.until(({ ended }) => ended === 1);
    const target = `ovt://127.0.0.1:${origin.port}/app/live?token=1`;
    // The pull belongs to no stream, so the path is empty.
    const path: string[] = [];
    expect(origin.requests).toEqual([
      { id: 1, command: 'describe', target, codecs: [5], events: true, path },
      { id: 2, command: 'play', target, codecs: [5], events: true, path },
      { id: 3, command: 'stop', target, codecs: [5], events: true, path },
    ]);
  });

  test('announces the tracks that the origin describes', async () => {
    const { sink } = await open(await serve());
    expect(sink.tracks).toMatchObject([
      [
        { id: 0, type: 'video', codec: 'H264', format: 'annexb', config: AVCC.high720, variantName: 'v', width: 1280, framerateConf: 30 },
        { id: 1, type: 'audio', codec: 'AAC', format: 'aac-raw', config: ASC.plainStereo48, sampleRate: 48_000, channels: 2 },
      ],
    ]);
  });

  test('tracks of other codecs are left out with a warning, and playlists keep the remaining renditions', async () => {
    const tracks = [
      VIDEO,
      AUDIO,
      track({ id: 2, name: 'still', codecId: 10, mediaType: 0 }),
      track({ id: 3, name: 'odd', codecId: 99, mediaType: 1 }),
      track({ id: 4, name: 'surround', codecId: 9, mediaType: 1, audioTrack: { samplerate: 48_000, sampleFormat: 8, layout: 0x60f } }),
    ];
    const playlists = [
      playlist('abr.m3u8', [
        ['v', 'a'],
        ['still', 'a'],
        ['v', ''],
      ]),
      playlist('gone', [
        ['still', ''],
        ['', ''],
      ]),
      playlist('../up', [['v', 'a']]),
    ];
    const { sink, logger } = await open(await serve(plays(contents(tracks, playlists))));
    expect(sink.tracks[0]?.map(({ id }) => id)).toEqual([0, 1]);
    expect(logger.lines[0]?.message).toBe(
      'tracks left out: still (JPEG), odd (codec 99), surround (OPUS of 6 channels); ' +
        'OVT can bring H.264, H.265, VP8, VP9, AV1, AAC, MP3 and Opus in stereo',
    );
    expect(
      sink.playlists.map(({ fileName, renditions }) => [
        fileName,
        renditions.map(({ videoVariantName, audioVariantName }) => [videoVariantName, audioVariantName]),
      ]),
    ).toEqual([
      [
        'abr',
        [
          ['v', 'a'],
          ['v', ''],
        ],
      ],
    ]);
  });

  test.each<[string, object, object]>([
    ['H.264 that has to be learnt', { codecId: 1, mediaType: 0 }, { codec: 'H264', config: null }],
    ['H.264 with a broken configuration', { codecId: 1, mediaType: 0, decoderConfig: 'AAAA' }, { codec: 'H264', config: null }],
    ['H.265', { codecId: 2, mediaType: 0 }, { codec: 'H265', format: 'annexb' }],
    ['VP8', { codecId: 3, mediaType: 0 }, { codec: 'VP8', format: 'raw', config: null }],
    ['AV1', { codecId: 5, mediaType: 0 }, { codec: 'AV1', format: 'obu' }],
    ['AAC without a configuration', { codecId: 7, mediaType: 1 }, { codec: 'AAC', config: ASC.plainStereo48 }],
    ['MP3', { codecId: 8, mediaType: 1 }, { codec: 'MP3', format: 'raw', config: null }],
    ['Opus', { codecId: 9, mediaType: 1 }, { codec: 'OPUS', format: 'raw', config: expect.any(Uint8Array) }],
  ])('%s', async (_name, described, expected) => {
    const { sink } = await open(await serve(plays(contents([track({ id: 5, ...described })]))));
    expect(sink.tracks[0]).toMatchObject([{ id: 5, ...expected }]);
  });

  test('frames start with a keyframe, and an absent keyframe flag is passed on as unknown', async () => {
    const origin = await serve();
    const { sink } = await open(origin);
    const picture = { trackId: 0, format: 1, data: ANNEXB.openGop };
    origin.sendMedia({ ...picture, pts: 1, flag: 1 });
    origin.sendMedia({ ...picture, pts: 2, dts: -5 });
    origin.sendMedia({ ...picture, pts: 3, flag: 1 });
    origin.sendMedia({ ...picture, pts: 4, flag: 0 });
    await sink.until(({ packets }) => packets.length === 3);
    expect(sink.packets).toMatchObject([
      { trackId: 0, pts: 2, dts: -5, keyframe: true },
      { pts: 3, keyframe: false },
      { pts: 4, keyframe: null },
    ]);
    expect(Buffer.compare(sink.packets[0]!.data, ANNEXB.openGop)).toBe(0);
    expect(sink.bytes).toBeGreaterThan(3 * ANNEXB.openGop.length);
  });

  test('ADTS headers are removed, and several frames in one packet become several packets', async () => {
    const origin = await serve();
    const { sink } = await open(origin);
    origin.sendMedia({ trackId: 1, pts: 5000, format: 10, data: Buffer.concat([adts(3), adts(4)]) });
    origin.sendMedia({ trackId: 1, pts: 9000, format: 8, data: Buffer.alloc(5) });
    await sink.until(({ packets }) => packets.length === 3);
    expect(sink.packets.map(({ pts, data }) => [pts, data.length])).toEqual([
      [5000, 3],
      [6024, 4],
      [9000, 5],
    ]);
  });

  test('unusable packets are counted and logged once', async () => {
    const origin = await serve();
    const { sink, session, logger } = await open(origin);
    origin.sendMedia({ trackId: 7, format: 1, data: Buffer.alloc(5) });
    origin.sendMedia({ trackId: 0, format: 0, data: Buffer.alloc(5) });
    origin.sendMedia({ trackId: 1, format: 10, data: Buffer.alloc(9) });
    origin.sendMedia({ trackId: 1, format: 10, data: adts(3).subarray(0, 8) });
    origin.sendMedia({ trackId: 1, format: 10, data: adts(3) });
    await sink.until(({ packets }) => packets.length === 1);
    session.close();
    expect(logger.lines.map(({ message }) => message)).toEqual(['4 packets of the origin could not be used']);
  });

  test.each<[string, OvtScript, string]>([
    ['no such stream', () => ({ code: 404, message: 'There is no such stream' }), 'describe was answered with 404 There is no such stream'],
    ['a stream that has not started', () => ({ code: 202, message: 'wait' }), 'describe was answered with 202 wait'],
    ['no contents', () => ({}), "'contents' is no object"],
    [
      'a refusal to play',
      ({ command }) => (command === 'play' ? { code: 404, message: 'no' } : { contents: contents() }),
      'play was answered with 404 no',
    ],
    ['no track at all', plays(contents([])), 'no track of a supported codec'],
    ['data only', plays(contents([track({ id: 0, codecId: 0, mediaType: 2 })])), 'no track of a supported codec'],
    ['an answer to another request', ({ id }) => ({ id: id + 1 }), "unexpected message 'describe' 200 ok"],
    ['another protocol', () => Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), 'payload type 84'],
    [
      'a server error',
      () => ({ id: 0, command: 'unknown', code: 500, message: 'Server Internals Error' }),
      "'unknown' 500 Server Internals Error",
    ],
  ])('an attempt fails with a reason: %s', async (_name, script, message) => {
    const origin = await serve(script);
    await expect(open(origin)).rejects.toThrow(message);
    await origin.until(({ ended }) => ended === 1);
  });

  test('an origin that does not answer fails the attempt in time', async () => {
    const origin = await serve(() => null);
    await expect(open(origin, 100)).rejects.toThrow('did not answer in time');
    await origin.until(({ ended }) => ended === 1);
  });

  test('an unreachable origin or an invalid URL fails with a reason', async () => {
    const origin = await serve();
    const { port } = origin;
    await origin.stop();
    origins.length = 0;
    const target = {
      settings: {},
      ignoreSenderReports: false,
      sink: new RecordingSink(),
      signal: AbortSignal.timeout(5000),
      logger: new RecordingLogger(),
    };
    const source = new OvtPullSource(new ManualClock());
    await expect(source.open({ ...target, url: `ovt://127.0.0.1:${port}/app/live` })).rejects.toThrow('ECONNREFUSED');
    await expect(source.open({ ...target, url: 'ovt://127.0.0.1/app' })).rejects.toThrow('no OVT URL');
    await expect(source.open({ ...target, url: `ovt://127.0.0.1:${port}/app/live`, signal: AbortSignal.abort() })).rejects.toThrow();
  });

  test.each<[string, (origin: FakeOvtOrigin) => void, object]>([
    ['a stop', (origin) => origin.respond({ command: 'STOP', message: 'bye' }), { code: 'peer-left', detail: 'the origin stopped: bye' }],
    ['another message', (origin) => origin.respond({ command: 'play' }), { code: 'peer-error' }],
    ['garbage', (origin) => origin.send(Buffer.alloc(64, 0xee)), { code: 'peer-error', detail: expect.stringContaining('version 3') }],
    [
      'a media packet that is too short',
      (origin) => origin.send(Buffer.from(`601e${'00'.repeat(14)}000100`, 'hex')),
      { code: 'peer-error' },
    ],
    ['the end of the connection', (origin) => void origin.stop().then(() => origins.splice(0)), { code: 'peer-left' }],
  ])('%s ends the session', async (_name, act, reason) => {
    const origin = await serve();
    const { sink } = await open(origin);
    act(origin);
    await sink.until(({ reason: ended }) => ended !== null);
    expect(sink.reason).toMatchObject(reason);
  });

  test('an internal fault is logged in full, and ends the session as "internal error" only', async () => {
    const origin = await serve();
    const { sink, logger } = await open(origin);
    sink.push = () => {
      throw new TypeError('a bug');
    };
    origin.sendMedia({ trackId: 1, format: 8, data: Buffer.alloc(5) });
    await sink.until(({ reason: ended }) => ended !== null);
    expect(sink.reason).toEqual({ code: 'peer-error', detail: 'internal error' });
    expect(logger.lines.find(({ level }) => level === 'error')?.fields['err']).toBeInstanceOf(TypeError);
  });

  test('a paused session reads nothing until it is resumed', async () => {
    const origin = await serve();
    const { sink, session } = await open(origin);
    session.pause?.();
    const unit = { trackId: 1, format: 8, data: Buffer.alloc(5) };
    origin.sendMedia(unit);
    const other = await open(origin);
    // Both got it at the same time, but one does not read.
    origin.sendMedia(unit);
    await other.sink.until(({ packets }) => packets.length === 1);
    expect(sink.packets).toEqual([]);
    session.resume?.();
    await sink.until(({ packets }) => packets.length === 2);
  });
});

describe('recorded packets of a real OvenMediaEngine', () => {
  test('becomes the tracks, playlists and frames of a ladder', async () => {
    const origin = await serve(replay(recordedOvt('origin-ladder')));
    const { sink, session, logger } = await open(origin);
    await sink.until(({ bytes }) => bytes > 96_000);
    expect(sink.tracks).toMatchObject([
      [
        { id: 0, type: 'video', codec: 'H264', variantName: 'bypass_video', timebase: { num: 1, den: 1000 }, width: 160, height: 90 },
        { id: 1, type: 'video', codec: 'H264', variantName: 'v240', timebase: { num: 1, den: 90_000 } },
        { id: 2, type: 'audio', codec: 'AAC', variantName: 'bypass_audio', sampleRate: 48_000, channels: 2 },
        { id: 3, type: 'audio', codec: 'OPUS', variantName: 'opus', sampleRate: 48_000, channels: 2 },
        { id: 4, type: 'data' },
      ],
    ]);
    expect(sink.playlists.map(({ fileName, renditions }) => [fileName, renditions.map(({ name }) => name)])).toEqual([
      ['abr', ['full', 'small']],
      ['rtc', ['o']],
    ]);
    const of = (trackId: number) => sink.packets.filter((packet) => packet.trackId === trackId);
    expect([2, 3].map((id) => of(id).length)).toEqual([139, 150]);
    for (const id of [0, 1]) expect(of(id).filter(({ keyframe }) => keyframe === true)).toHaveLength(3);
    for (const id of [0, 1, 2, 3]) {
      const times = of(id).map(({ dts }) => dts);
      expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
    }
    // Published with B-frames.
    expect(of(0).some(({ pts, dts }) => pts > dts)).toBe(true);
    expect(sink.reason).toBeNull();
    session.close();
    await origin.until(({ ended }) => ended === 1);
    expect(origin.requests.map(({ id, command }) => [id, command])).toEqual([
      [1, 'describe'],
      [2, 'play'],
      [3, 'stop'],
    ]);
    expect(logger.lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  });

  test('becomes frames with detected keyframes, and every frame of AAC', async () => {
    const { sink } = await open(await serve(replay(recordedOvt('origin-h265'))));
    await sink.until(({ bytes }) => bytes > 37_000);
    const pictures = sink.packets.filter(({ trackId }) => trackId === 1);
    expect(pictures).toHaveLength(28);
    expect(pictures.map(({ keyframe }) => keyframe)).toEqual(expect.arrayContaining([null, true]));
    const frames = sink.packets.filter(({ trackId }) => trackId === 2);
    expect(frames.length).toBeGreaterThan(8 * 10);
    // 1024 samples each, at 90 kHz.
    const steps = frames.slice(1).map(({ pts }, index) => pts - frames[index]!.pts);
    expect(steps.every((step) => Math.abs(step - 1920) <= 1920 / 2)).toBe(true);
  });
});
