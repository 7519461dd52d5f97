/** A dump made through the API plays from a plain web server, and from disk after a kill. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { openBrowser } from '../harness/browser.ts';
import { until } from '../harness/poll.ts';
import { decode } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const STREAM = apiPath.stream('live');

async function start(): Promise<{ server: TestServer; folder: string; encoder: FfmpegPublisher }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-dumped-'));
  const server = await startServer({ segmentDuration: 1 });
  const encoder = publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await encoder.stop();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await until('the stream is there', async () => (await server.api.call('GET', STREAM)).status === 200);
  return { server, folder, encoder };
}

async function startDump(server: TestServer, folder: string): Promise<void> {
  const wanted = { id: 'd', outputStreamName: 'live', outputPath: path.join(folder, 'dump'), infoFile: path.join(folder, 'info.xml') };
  const { status, body } = await server.api.call('POST', `${STREAM}:startHlsDump`, wanted);
  expect({ status, body }).toEqual({ status: 200, body: { message: 'OK', response: ['live'], statusCode: 200 } });
}

function segments(folder: string): number {
  const info = path.join(folder, 'info.xml');
  return existsSync(info) ? [...readFileSync(info, 'utf8').matchAll(/<File>[^<]*seg_0_/g)].length : 0;
}

/** Number of frames by the durations in the video playlist. */
function listedFrames(folder: string): number {
  const name = /<File>([^<]*chunklist_0[^<]*)</.exec(readFileSync(path.join(folder, 'info.xml'), 'utf8'))?.[1] ?? '';
  const durations = [...readFileSync(name, 'utf8').matchAll(/#EXTINF:([\d.]+),/g)].map(([, seconds]) => Number(seconds));
  return Math.round(durations.reduce((sum, seconds) => sum + seconds, 0) * 30);
}

async function serve(folder: string): Promise<string> {
  const server = createServer((request, response) => {
    const file = path.join(folder, path.basename(new URL(request.url ?? '/', 'http://x').pathname));
    const type = file.endsWith('.m3u8') ? 'application/vnd.apple.mpegurl' : 'video/mp4';
    response.writeHead(existsSync(file) ? 200 : 404, { 'access-control-allow-origin': '*', 'content-type': type });
    response.end(existsSync(file) ? readFileSync(file) : '');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a stopped dump plays in hls.js from a static server and decodes to the frame', async () => {
  const { server, folder } = await start();
  await startDump(server, folder);
  await until('six segments are dumped', () => segments(folder) >= 6, { deadlineMs: 30_000 });
  expect((await server.api.call('POST', `${STREAM}:stopHlsDump`, { outputStreamName: 'live', id: 'd' })).status).toBe(200);
  await until('the dump is complete', () => readFileSync(path.join(folder, 'info.xml'), 'utf8').includes('<Status>Completed</Status>'));
  const { status, body } = await server.api.call('POST', `${STREAM}:hlsDumps`, { outputStreamName: 'live' });
  expect(status).toBe(200);
  expect(body).toMatchObject({ response: [{ id: 'd', enabled: false }] });
  await server.stop();

  const { frames, errors } = await decode(path.join(folder, 'dump/llhls.m3u8'), 60);
  expect(errors).toBe('');
  expect(Math.abs(frames - listedFrames(folder))).toBeLessThanOrEqual(1);
  const browser = await openBrowser();
  onTestFinished(() => browser.close());
  const player = await browser.play(`${await serve(path.join(folder, 'dump'))}/llhls.m3u8`);
  const state = await player.played(3, 30_000);
  expect(state).toMatchObject({ width: 320, height: 180, errors: [] });
});

test('a dump interrupted by a kill plays up to its last segment, and has the status Error after the next start', async () => {
  const { server, folder } = await start();
  await startDump(server, folder);
  await until('three segments are dumped', () => segments(folder) >= 3, { deadlineMs: 30_000 });
  await server.kill();
  const { frames, errors } = await decode(path.join(folder, 'dump/llhls.m3u8'), 60);
  expect(errors).toBe('');
  expect(Math.abs(frames - listedFrames(folder))).toBeLessThanOrEqual(1);
  expect(frames).toBeGreaterThanOrEqual(80);
  const status = (): string | undefined => /<Status>(\w+)</.exec(readFileSync(path.join(folder, 'info.xml'), 'utf8'))?.[1];
  expect(status()).toBe('Running');
  await server.restart();
  expect(status()).toBe('Error');
});
