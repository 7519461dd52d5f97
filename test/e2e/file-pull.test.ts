/** Files played as streams: by the API and by the map of the configuration. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { decode, probe } from '../harness/probe.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const STREAMS = `${apiPath.app('default', 'app')}/streams`;
const SECONDS = 3;
const ENCODE = ['-t', `${SECONDS}`, '-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-g', '30', '-c:a', 'aac', '-threads', '1'];

let server: TestServer;
let media: string;

beforeAll(async () => {
  media = mkdtempSync(path.join(tmpdir(), 'millrace-media-'));
  const source = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30', '-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000'];
  execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...source, ...ENCODE, path.join(media, 'film one.mp4')]);
  const copy = (...options: string[]) =>
    execFileSync(requireProgram('ffmpeg'), ['-v', 'error', '-i', 'film one.mp4', ...options], { cwd: media });
  copy('-c', 'copy', 'film.ts');
  copy('-c', 'copy', '-movflags', 'frag_keyframe+empty_moov', 'fragments.mp4');
  writeFileSync(path.join(media, 'text.mp4'), 'no film');
  symlinkSync('/etc/passwd', path.join(media, 'link.mp4'));
  const map = '<StreamMap><Stream><Name>mapped</Name><Path>later.mp4</Path></Stream></StreamMap>';
  server = await startServer({ segmentDuration: 1, fileProvider: `<RootPath>${media}</RootPath>${map}` });
});

afterAll(async () => {
  await server?.close();
  rmSync(media, { recursive: true, force: true });
});

async function pull(name: string, urls: readonly string[], properties: object = {}): Promise<number> {
  return (await server.api.call('POST', STREAMS, { name, urls, properties })).status;
}

async function plays(name: string): Promise<void> {
  const url = server.http(name, 'llhls.m3u8');
  const probed = await until(`${name} to be playable`, async () => {
    const found = await probe(url);
    return found.video === undefined || found.audio === undefined ? null : found;
  });
  expect(probed.video).toMatchObject({ codec_name: 'h264', width: 320, height: 180 });
  // Longer than the file, which repeats.
  const { frames, errors } = await decode(url, SECONDS + 2);
  expect(errors).toBe('');
  expect(frames).toBeGreaterThan(SECONDS * 30);
}

test.concurrent.each([
  ['mp4', 'file:///film%20one.mp4'],
  ['fragments', 'file://fragments.mp4'],
  ['ts', 'file:///film.ts?any=query'],
])('%s is played in a loop without errors', async (name, url) => {
  expect(await pull(name, [url])).toBe(201);
  const { input } = await server.api.get<StreamInformation>(apiPath.stream(name));
  expect(input).toMatchObject({ sourceType: 'File', sourceUrl: url });
  await plays(name);
});

test('a missing or invalid file is 502, a forbidden path is 400, and the next URL is tried', async () => {
  for (const url of ['file:///nothing.mp4', 'file:///text.mp4', 'file:///']) expect(await pull('none', [url]), url).toBe(502);
  for (const url of ['file:///../etc/passwd', 'file:///%2e%2e/x', 'file:///link.mp4']) expect(await pull('none', [url]), url).toBe(400);
  expect(await server.api.get(STREAMS)).not.toContain('none');
  expect(await pull('second', ['file:///nothing.mp4', 'file:///film.ts'])).toBe(201);
  expect(await pull('second', ['file:///film.ts'])).toBe(409);
});

test('a mapped file is played as soon as it exists', async () => {
  expect(await server.api.get(STREAMS)).toContain('mapped');
  copyFileSync(path.join(media, 'film one.mp4'), path.join(media, 'half'));
  renameSync(path.join(media, 'half'), path.join(media, 'later.mp4'));
  const { input } = await until(
    'the mapped stream to have tracks',
    async () => {
      const found = await server.api.get<StreamInformation>(apiPath.stream('mapped'));
      return found.input.tracks.some(({ video }) => (video?.framerateLatest ?? 0) > 0) ? found : null;
    },
    { deadlineMs: 45_000 },
  );
  expect(input).toMatchObject({ sourceType: 'File', sourceUrl: 'file://later.mp4' });
});
