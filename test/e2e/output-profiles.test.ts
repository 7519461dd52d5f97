/** Output profiles with real encoders: a ladder, a second codec for audio, images, and a transcoder that dies. */
import { execFileSync } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const APP = 'made';
const HOST = 'localhost';
/** The macro for the name of the inbound stream. */
const ORIGIN_NAME = `\${OriginStreamName}`;
const LADDER = {
  name: 'ladder',
  outputStreamName: ORIGIN_NAME,
  encodes: {
    videos: [
      { name: 'source', bypass: true },
      { name: 'low', codec: 'h264', bitrate: 200_000, width: 160, height: 90, framerate: 15 },
    ],
    audios: [
      { name: 'aac', bypass: true },
      { name: 'mono', codec: 'aac', bitrate: 64_000, samplerate: 44_100, channel: 1 },
      { name: 'opus', codec: 'opus', bitrate: 64_000 },
    ],
    images: ['jpeg', 'png', 'webp'].map((codec) => ({ name: codec, codec, width: 160, height: 90, framerate: 1 })),
  },
  playlists: [
    {
      name: 'abr',
      fileName: 'abr',
      renditions: [
        { name: 'low', video: 'low', audio: 'opus' },
        { name: 'source', video: 'source', audio: 'opus' },
      ],
    },
    { name: 'ts', fileName: 'mixed', options: { enableTsPackaging: true }, renditions: [{ name: 'm', video: 'source', audio: 'mono' }] },
  ],
};

async function start(): Promise<{ server: TestServer; encoder: FfmpegPublisher }> {
  const server = await startServer({ hostNames: ['127.0.0.1'] });
  onTestFinished(async () => {
    await server.close();
  });
  await server.api.create('/v1/vhosts', [{ name: 'second', host: { names: [HOST] } }]);
  const publishers = { llhls: { chunkDuration: 0.5, segmentDuration: 1, segmentCount: 10 }, hls: { segmentDuration: 1 }, thumbnail: {} };
  const application = { name: APP, type: 'live', providers: { rtmp: {} }, publishers, outputProfiles: { outputProfile: [LADDER] } };
  await server.api.create(`${apiPath.vhost('second')}/apps`, [application]);
  const encoder = publish({ url: server.rtmp('live', APP, HOST), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await encoder.stop();
  });
  await encoder.sent(90);
  await until('the output stream begins', async () => (await outputTracks(server)).length === 9);
  return { server, encoder };
}

async function outputTracks(server: TestServer) {
  const { outputs } = await server.api.get<StreamInformation>(apiPath.stream('live', APP, 'second'));
  return outputs[0]?.tracks ?? [];
}

function url(server: TestServer, file: string): string {
  return server.http('live', file, APP, HOST);
}

/** The media playlist of the outbound video track `id`. */
async function chunklist(server: TestServer, id: number): Promise<string> {
  const master = await (await fetch(url(server, 'abr.m3u8'))).text();
  const uri = master.match(new RegExp(`\\S+chunklist_${id}_video\\S+`))?.[0] ?? '';
  return await (await fetch(new URL(uri, url(server, 'abr.m3u8')))).text();
}

/** Number of the last segment with media; a missing segment is listed as a gap. */
function lastSegment(playlist: string): number {
  const listed = Array.from(playlist.matchAll(/(#EXT-X-GAP\n)?#EXTINF:.*\nseg_\d+_(\d+)_/g));
  return Math.max(...listed.flatMap(([, gap, number]) => (gap === undefined ? [Number(number)] : [])));
}

/** Beginnings of the segments with media, ms, by number. */
function beginnings(playlist: string): Map<number, number> {
  const listed = playlist.matchAll(/#EXT-X-PROGRAM-DATE-TIME:(\S+)\n(?:#EXT-X-PART:.*\n)*#EXTINF:.*\nseg_\d+_(\d+)_/g);
  return new Map(Array.from(listed, ([, date = '', number]) => [Number(number), Date.parse(date)]));
}

test('a ladder with two codecs of audio and three kinds of frames', async () => {
  const { server } = await start();
  const master = await (await fetch(url(server, 'abr.m3u8'))).text();
  expect(master.match(/RESOLUTION=\S+?,FRAME-RATE=[\d.]+/g)).toEqual([
    'RESOLUTION=160x90,FRAME-RATE=15.000',
    'RESOLUTION=320x180,FRAME-RATE=30.000',
  ]);
  expect(master).toMatch(/CODECS="avc1\.[0-9a-f]{6},opus"/);
  expect((await outputTracks(server)).map(({ video, audio }) => video?.codec ?? audio?.codec)).toEqual([
    ...['H264', 'H264', 'AAC', 'AAC', 'OPUS', 'JPEG', 'PNG', 'WEBP', undefined],
  ]);
  for (const [extension, codec] of [
    ['jpg', 'mjpeg'],
    ['png', 'png'],
    ['webp', 'webp'],
  ]) {
    const { video } = await probe(url(server, `thumb.${extension}`));
    expect(video, extension).toMatchObject({ codec_name: codec, width: 160, height: 90 });
  }
});

test('bypassed frames and encoded audio begin together and stay in step', async () => {
  const { server } = await start();
  const { video, audio } = await probe(url(server, 'ts:mixed.m3u8'));
  expect(video).toMatchObject({ codec_name: 'h264', width: 320 });
  expect(audio).toMatchObject({ codec_name: 'aac', sample_rate: '44100', channels: 1 });
  expect(Math.abs(Number(video?.start_time) - Number(audio?.start_time))).toBeLessThan(0.1);
});

test('a killed transcoder interrupts neither the ingest nor the viewers', async () => {
  const { server, encoder } = await start();
  const before = await until('the encoded rendition has media', async () => {
    const last = lastSegment(await chunklist(server, 1));
    return Number.isFinite(last) ? last : null;
  });
  const children = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(server.pid)])
    .toString()
    .split('\n');
  const pids = children.filter((line) => line.includes('/transcoder/')).map((line) => Number.parseInt(line, 10));
  expect(pids.length).toBeGreaterThan(0);
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  await encoder.sent(150);
  // The new process first works off the waiting packets.
  await until('the encoded rendition goes on beside the other', async () => {
    const [low, source] = [lastSegment(await chunklist(server, 1)), lastSegment(await chunklist(server, 0))];
    return low >= before + 4 && Math.abs(low - source) <= 2;
  });
  const [source, low] = [await chunklist(server, 0), await chunklist(server, 1)];
  expect(source).not.toContain('#EXT-X-GAP');
  // The time of the recovery depends on the machine; but the new process must continue the numbers and times of the old one.
  const [begins, made] = [beginnings(source), beginnings(low)];
  const later = [...made].filter(([number]) => number > before && begins.has(number));
  expect(later.length).toBeGreaterThan(1);
  // Half a frame of the slower rendition, and the rounding of a date.
  for (const [number, begin] of later) expect(Math.abs(begin - (begins.get(number) ?? 0)), `segment ${number}`).toBeLessThan(500 / 15 + 1);
  expect(encoder.child.exit).toBeNull();
});
