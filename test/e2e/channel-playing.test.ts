/** A channel of films with different formats, through the server and into hls.js: one player, which must not notice the boundaries. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath } from '../harness/api-client.ts';
import { openBrowser, type PlayerBrowser } from '../harness/browser.ts';
import { until } from '../harness/poll.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { fetchText, openSession, readMediaPlaylist } from '../harness/viewer.ts';

const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-sc_threshold', '0'];
const X265 = ['-c:v', 'libx265', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-x265-params', 'log-level=none'];
const VP9 = ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-pix_fmt', 'yuv420p'];
/** Name, width, height, frames per second, sample rate and encoding. */
const FILMS: readonly (readonly [string, number, number, number, number, readonly string[]])[] = [
  ['plain.mp4', 320, 180, 25, 44_100, [...X264, '-bf', '0', '-g', '50', '-c:a', 'aac', '-ac', '1']],
  ['frames.mp4', 352, 288, 30, 48_000, [...X264, '-bf', '3', '-g', '60', '-c:a', 'aac', '-ac', '2']],
  ['stream.ts', 384, 216, 25, 48_000, [...X264, '-bf', '2', '-g', '50', '-c:a', 'aac', '-ac', '2']],
  ['other.mp4', 256, 144, 24, 48_000, [...X265, '-g', '48', '-c:a', 'libopus', '-ac', '2']],
  ['foreign.mkv', 288, 162, 25, 48_000, [...VP9, '-g', '50', '-c:a', 'libvorbis', '-ac', '2']],
];
const SECONDS = 6;

let server: TestServer;
let browser: PlayerBrowser;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-playing-'));
  const media = path.join(folder, 'media');
  mkdirSync(media);
  for (const [name, width, height, fps, rate, options] of FILMS) {
    const picture = ['-f', 'lavfi', '-i', `testsrc2=size=${width}x${height}:rate=${fps}`];
    const sound = ['-f', 'lavfi', '-i', `sine=sample_rate=${rate}`];
    const limits = ['-t', `${SECONDS}`, '-threads', '1'];
    execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...picture, ...sound, ...limits, ...options, path.join(media, name)]);
  }
  const folders = `<MediaRootDir>${media}</MediaRootDir><ScheduleFilesDir>${path.join(folder, 'channels')}</ScheduleFilesDir>`;
  server = await startServer({ providers: `<Schedule>${folders}</Schedule>` });
  browser = await openBrowser();
}, 60_000);

afterAll(async () => {
  await browser?.close();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

test('hls.js plays films of different size, codec and audio in sequence without a gap', async () => {
  const scheduled = new Date().toISOString();
  const items = FILMS.map(([name]) => ({ url: `file://${name}` }));
  const body = { stream: { name: 'tv' }, programs: [{ scheduled, repeat: true, items }] };
  const channels = `${apiPath.app('default', 'app')}/scheduledChannels`;
  expect((await server.api.call('POST', channels, body)).status).toBe(201);
  const url = server.http('tv', 'llhls.m3u8');
  await until('the channel to be playable', async () => (await fetch(url)).ok);
  // With a window shorter than the latency target of hls.js, hls.js loads the same parts repeatedly and finally the whole first segment.
  // Chromium then drops the buffered rest of that GOP, whatever is being played.
  const { video } = await openSession(url);
  await until('three segments to be complete', async () => readMediaPlaylist(await fetchText(video), video).segments.length >= 3);
  const player = await browser.play(url);
  const shapes = new Set<string>();
  await until(
    'every film to have been on show',
    async () => {
      const { width, height } = await player.state();
      if (width > 0) shapes.add(`${width}x${height}`);
      return FILMS.every(([, wide, high]) => shapes.has(`${wide}x${high}`));
    },
    { deadlineMs: 90_000, everyMs: 250 },
  );
  const { errors, restarts } = await player.state();
  expect(restarts).toBe(0);
  // A player waits for media that is late on a busy machine, and jumps over gaps in the media.
  expect(errors.filter((error) => /hole|nudge|append|parsing|fatal/i.test(error))).toEqual([]);
  const { currentProgram } = await server.api.get<{ currentProgram: { state: string } }>(`${channels}/tv`);
  expect(currentProgram.state).toBe('onair');
});
