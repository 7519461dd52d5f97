/** Media files of other containers and codecs, read in transcoder processes and played as streams. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { decode, probe } from '../harness/probe.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const STREAMS = `${apiPath.app('default', 'app')}/streams`;
const SECONDS = 4;
const FRAMERATE = 25;
const VP9 = ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-g', `${FRAMERATE}`];

let server: TestServer;
let media: string;

beforeAll(async () => {
  media = mkdtempSync(path.join(tmpdir(), 'millrace-foreign-'));
  encode('film.mkv', [...VP9, '-c:a', 'libvorbis']);
  encode('film.avi', ['-c:v', 'mpeg4', '-g', `${FRAMERATE}`, '-c:a', 'libmp3lame']);
  encode('mapped.mpg', ['-c:v', 'mpeg2video', '-g', '12', '-c:a', 'mp2']);
  writeFileSync(path.join(media, 'garbage.mkv'), Buffer.alloc(100_000, 'garbage'));
  const map = '<StreamMap><Stream><Name>mapped</Name><Path>mapped.mpg</Path></Stream></StreamMap>';
  server = await startServer({ segmentDuration: 1, fileProvider: `<RootPath>${media}</RootPath>${map}` });
});

afterAll(async () => {
  await server?.close();
  rmSync(media, { recursive: true, force: true });
});

// A stream whose tracks are encoded costs a tenth of a core.
afterEach(async () => {
  for (const name of ['mkv', 'avi', 'killed']) await server.api.call('DELETE', apiPath.stream(name));
});

function encode(name: string, options: readonly string[]): void {
  const source = [
    '-f',
    'lavfi',
    '-i',
    `testsrc2=size=320x180:rate=${FRAMERATE}`,
    '-f',
    'lavfi',
    '-i',
    'sine=frequency=440:sample_rate=44100',
  ];
  const common = ['-t', `${SECONDS}`, '-threads', '1'];
  execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...source, ...options, ...common, path.join(media, name)]);
}

async function plays(name: string, video: object, audio: object): Promise<void> {
  const url = server.http(name, 'llhls.m3u8');
  const probed = await until(
    `${name} to be playable`,
    async () => {
      const found = await probe(url);
      return found.video === undefined || found.audio === undefined ? null : found;
    },
    { deadlineMs: 45_000 },
  );
  expect(probed.video).toMatchObject({ width: 320, height: 180, ...video });
  expect(probed.audio).toMatchObject(audio);
  // Longer than the file, which repeats.
  const { frames, errors } = await decode(url, SECONDS + 2);
  expect(errors).toBe('');
  expect(frames).toBeGreaterThan(SECONDS * FRAMERATE);
}

test('VP9 of a Matroska file passes unchanged, its Vorbis becomes AAC', async () => {
  expect((await server.api.call('POST', STREAMS, { name: 'mkv', urls: ['file:///film.mkv'], properties: {} })).status).toBe(201);
  const { input } = await server.api.get<StreamInformation>(apiPath.stream('mkv'));
  expect(input).toMatchObject({ sourceType: 'File', sourceUrl: 'file:///film.mkv' });
  await plays('mkv', { codec_name: 'vp9' }, { codec_name: 'aac', sample_rate: '48000', channels: 2 });
});

test('MPEG-4 of an AVI file becomes H.264, its MP3 passes unchanged', async () => {
  expect((await server.api.call('POST', STREAMS, { name: 'avi', urls: ['file:///film.avi'], properties: {} })).status).toBe(201);
  await plays('avi', { codec_name: 'h264', profile: 'High' }, { codec_name: 'mp3', sample_rate: '44100' });
});

test('a file of the map is read so, too', async () => {
  await plays('mapped', { codec_name: 'h264' }, { codec_name: 'aac' });
});

test('a stream continues with another process when its process dies', async () => {
  expect((await server.api.call('POST', STREAMS, { name: 'killed', urls: ['file:///film.avi'], properties: {} })).status).toBe(201);
  const pids = () => [...server.log.matchAll(/"stream":"killed".*"msg":"process (\d+) reads a file/g)].map((match) => Number(match[1]));
  const [first] = await until('the process is known', () => (pids().length === 1 ? pids() : null));
  process.kill(first!, 'SIGKILL');
  await until('another process', () => pids().length === 2);
  expect(server.log).toContain(`process ${first} died while it read a file: SIGKILL`);
  await plays('killed', { codec_name: 'h264' }, { codec_name: 'mp3' });
});

test('a file without media is 502', async () => {
  const { status } = await server.api.call('POST', STREAMS, { name: 'garbage', urls: ['file:///garbage.mkv'], properties: {} });
  expect(status).toBe(502);
});
