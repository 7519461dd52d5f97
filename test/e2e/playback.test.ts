/** One encoder, judged by ffprobe, by ffmpeg's decoder and by hls.js in Chromium. */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type HlsPlayer, openBrowser, type PlayerBrowser, type PlayerState } from '../harness/browser.ts';
import { until } from '../harness/poll.ts';
import { decode, frameRate, type Probed, probe } from '../harness/probe.ts';
import { type FfmpegPublisher, PUBLISH_DEFAULTS, publish } from '../harness/publisher.ts';
import { ROOT, startServer, type TestServer } from '../harness/server.ts';
import { fetchText, openSession, readMediaPlaylist } from '../harness/viewer.ts';

const LATENCY_LIMIT_MS = 2500;
const WATCH_SECONDS = 20;
/** A uniform frame has a variance of nearly 0; the test frame is far above this. */
const MIN_VARIANCE = 500;

let server: TestServer;
let encoder: FfmpegPublisher;
let browser: PlayerBrowser;

beforeAll(async () => {
  server = await startServer({ chunkDuration: 0.5, segmentDuration: 2 });
  encoder = publish({ url: server.rtmp('live'), withClock: true });
  browser = await openBrowser();
  await encoder.sent(5 * PUBLISH_DEFAULTS.fps);
});

afterAll(async () => {
  await browser?.close();
  await encoder?.stop();
  await server?.close();
});

function expectWhatWasSent(probed: Probed): void {
  expect(probed.video).toMatchObject({ codec_name: 'h264', width: PUBLISH_DEFAULTS.width, height: PUBLISH_DEFAULTS.height });
  expect(frameRate(probed.video?.avg_frame_rate ?? '0/1')).toBeCloseTo(PUBLISH_DEFAULTS.fps, 0);
  expect(probed.audio).toMatchObject({ codec_name: 'aac', sample_rate: '48000', channels: 2 });
}

test('ffprobe finds the published codecs, size and frame rate in LL-HLS', async () => {
  expectWhatWasSent(await probe(server.http('live', 'llhls.m3u8')));
});

test('ffprobe finds the published codecs, size and frame rate in HLS with MPEG-TS', async () => {
  expectWhatWasSent(await probe(server.http('live', 'ts:playlist.m3u8')));
});

test.for(['llhls.m3u8', 'ts:playlist.m3u8'])('ffmpeg decodes four seconds of %s without an error', async (file) => {
  const { frames, errors } = await decode(server.http('live', file), 4);
  expect(errors).toBe('');
  expect(frames).toBeGreaterThanOrEqual(4 * PUBLISH_DEFAULTS.fps - 2);
});

test('a blocking reload is answered when its part exists, and not before', async () => {
  const { video } = await openSession(server.http('live', 'llhls.m3u8'));
  const { lastSequence, lastPart } = readMediaPlaylist(await fetchText(video), video);
  const url = new URL(video);
  url.searchParams.set('_HLS_msn', `${lastSequence}`);
  url.searchParams.set('_HLS_part', `${lastPart + 2}`);
  const askedAt = performance.now();
  const next = readMediaPlaylist(await fetchText(url.href), video);
  const waited = performance.now() - askedAt;
  expect(next.lastSequence * 1000 + next.lastPart).toBeGreaterThan(lastSequence * 1000 + lastPart);
  expect(waited).toBeGreaterThan(300);
  expect(waited).toBeLessThan(3000);
});

/** Watches for `WATCH_SECONDS` of video without a stall; returns the delays from encoder to screen, ms, shortest first. */
async function watch(player: HlsPlayer): Promise<{ delays: readonly number[]; ended: PlayerState }> {
  const begun = await player.played(3, 30_000);
  const delays: number[] = [];
  await until(
    `${WATCH_SECONDS} s of playback`,
    async () => {
      const delay = await player.delay();
      if (delay !== null) delays.push(delay);
      return (await player.state()).time >= begun.time + WATCH_SECONDS;
    },
    { deadlineMs: (WATCH_SECONDS + 10) * 1000, everyMs: 500 },
  );
  const ended = await player.state();
  expect(ended.stalls - begun.stalls, ended.errors.join('\n')).toBe(0);
  expect(ended.restarts).toBe(0);
  expect(ended.frames - begun.frames).toBeGreaterThan(0.8 * WATCH_SECONDS * PUBLISH_DEFAULTS.fps);
  return { delays: delays.sort((one, other) => one - other), ended };
}

test('hls.js in Chromium plays on without a stall, close to live, and shows the frame', async () => {
  const player = await browser.play(server.http('live', 'llhls.m3u8'));
  const { delays, ended } = await watch(player);
  const median = delays[Math.floor(delays.length / 2)] ?? Number.POSITIVE_INFINITY;
  console.log(`delay from encoder to screen: median ${median} ms, worst ${delays.at(-1)} ms; hls.js says ${ended.latency?.toFixed(2)} s`);
  expect(median).toBeLessThan(LATENCY_LIMIT_MS);
  expect(ended.latency).toBeLessThan(LATENCY_LIMIT_MS / 1000);

  const folder = path.join(ROOT, 'test-results');
  mkdirSync(folder, { recursive: true });
  await player.page.screenshot({ path: path.join(folder, 'hls-js-playback.png') });
  const picture = await player.picture();
  expect(picture?.variance).toBeGreaterThan(MIN_VARIANCE);
  expect(picture?.mean).toBeGreaterThan(40);
  await player.page.close();
});

test('hls.js with default settings, which never catch up, does not stall either', async () => {
  const player = await browser.play(server.http('live', 'llhls.m3u8'), 1);
  await watch(player);
  await player.page.close();
});
