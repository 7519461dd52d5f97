/** A ladder of real encoders, judged by ffprobe, the API and hls.js: as configured, aligned, and switched without a stall. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { timescaleOf } from '../../bench/lib/fmp4.ts';
import { apiPath } from '../harness/api-client.ts';
import { type HlsPlayer, openBrowser, type PlayerBrowser } from '../harness/browser.ts';
import { until } from '../harness/poll.ts';
import { frameRate, probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { fetchText } from '../harness/viewer.ts';
import { readFragment } from '../validator/llhls-validator.ts';

const APP = 'made';
const HOST = 'localhost';
const FPS = 30;
const LADDER = [
  { name: 'high', codec: 'h264', width: 640, height: 360, bitrate: 500_000 },
  { name: 'middle', codec: 'h264', width: 426, height: 240, bitrate: 300_000, framerate: 30 },
  { name: 'low', codec: 'h264', width: 320, height: 180, bitrate: 150_000, framerate: 15 },
] as const;
const PROFILE = {
  name: 'ladder',
  outputStreamName: `\${OriginStreamName}`,
  encodes: {
    videos: [{ name: 'source', bypass: true }, ...LADDER],
    audios: [{ name: 'opus', codec: 'opus', bitrate: 64_000 }],
    images: [{ name: 'jpeg', codec: 'jpeg', width: 320, height: 180, framerate: 1 }],
  },
  playlists: [
    {
      name: 'abr',
      fileName: 'abr',
      renditions: ['source', ...LADDER.map(({ name }) => name)].map((name) => ({ name, video: name, audio: 'opus' })),
    },
    ...LADDER.map(({ name }) => ({ name, fileName: name, renditions: [{ name, video: name }] })),
  ],
};

let server: TestServer;
let encoder: FfmpegPublisher;
let browser: PlayerBrowser;

beforeAll(async () => {
  server = await startServer({ hostNames: ['127.0.0.1'] });
  await server.api.create('/v1/vhosts', [{ name: 'second', host: { names: [HOST] } }]);
  const llhls = { chunkDuration: 0.5, segmentDuration: 2, segmentCount: 10, crossDomains: { urls: ['*'] } };
  const application = {
    name: APP,
    type: 'live',
    providers: { rtmp: {} },
    publishers: { llhls, thumbnail: {} },
    outputProfiles: { outputProfile: [PROFILE] },
  };
  await server.api.create(`${apiPath.vhost('second')}/apps`, [application]);
  encoder = publish({ url: server.rtmp('live', APP, HOST), videoKbps: 1200, gop: 45 });
  browser = await openBrowser();
  await encoder.sent(10 * FPS);
});

afterAll(async () => {
  await browser?.close();
  await encoder?.stop();
  await server?.close();
});

function url(file: string): string {
  return server.http('live', file, APP, HOST);
}

interface Segment {
  readonly msn: number;
  /** Whole ms. */
  readonly date: number;
  readonly seconds: number;
  readonly url: string;
  /** URL of the init segment. */
  readonly init: string;
}

/** The complete segments of the rendition with the first media playlist of `playlist`. */
async function segments(playlist: string): Promise<Segment[]> {
  const master = await fetchText(url(playlist));
  const uri = master.split('\n').find((line) => line !== '' && !line.startsWith('#')) ?? '';
  const from = new URL(uri, url(playlist));
  const text = await fetchText(from.href);
  const pattern = /#EXT-X-PROGRAM-DATE-TIME:(\S+)\n(?:#EXT-X-PART:.*\n)*#EXTINF:([\d.]+),.*\n(\S+)/g;
  const init = new URL(/#EXT-X-MAP:URI="([^"]+)"/.exec(text)?.[1] ?? '', from).href;
  return Array.from(text.matchAll(pattern), ([, date = '', seconds, name = '']) => ({
    msn: Number(/^seg_\d+_(\d+)_/.exec(name)?.[1]),
    date: Date.parse(date),
    init,
    seconds: Number(seconds),
    url: new URL(name, from).href,
  }));
}

function secondsOf(list: readonly Segment[]): number {
  return list.reduce((sum, { seconds }) => sum + seconds, 0);
}

test.for(LADDER)('$name has the configured codec, size, frame rate and bitrate', async (rung) => {
  const { video } = await probe(url(`${rung.name}.m3u8`));
  expect(video).toMatchObject({ codec_name: rung.codec, width: rung.width, height: rung.height });
  expect(frameRate(video?.avg_frame_rate ?? '0/1')).toBeCloseTo('framerate' in rung ? rung.framerate : FPS, 0);
  // On a busy machine the transcoder may be far behind the encoder.
  const listed = await until('more than 4 s of media behind the first segment', async () => {
    const rest = (await segments(`${rung.name}.m3u8`)).slice(1);
    return secondsOf(rest) > 4 ? rest : null;
  });
  let bytes = 0;
  for (const segment of listed) bytes += (await (await fetch(segment.url)).arrayBuffer()).byteLength;
  const seconds = secondsOf(listed);
  expect(seconds).toBeGreaterThan(4);
  expect(Math.abs((bytes * 8) / seconds / rung.bitrate - 1), `${rung.name}: ${((bytes * 8) / seconds).toFixed(0)} bit/s`).toBeLessThan(0.1);
});

/**
 * Presentation time of a segment's first frame, ms of the timeline common to all renditions. Taken from the media, because dates are
 * rounded.
 */
async function firstShown({ url, init }: Segment): Promise<number> {
  const [media, head] = await Promise.all([url, init].map(async (file) => Buffer.from(await (await fetch(file)).arrayBuffer())));
  const [ticks = Number.NaN] = readFragment(media ?? Buffer.of()).shown;
  return (ticks * 1000) / timescaleOf(head ?? Buffer.of());
}

test('all renditions start their segments at the same times, including the bypassed one', async () => {
  const { lists, common } = await until('three segments of each rendition', async () => {
    const lists = await Promise.all(['abr', ...LADDER.map(({ name }) => name)].map((name) => segments(`${name}.m3u8`)));
    const common = (lists[0] ?? []).filter(({ msn }) => lists.every((list) => list.some((segment) => segment.msn === msn)));
    return common.length > 2 ? { lists, common } : null;
  });
  for (const one of common) {
    const shown = await firstShown(one);
    for (const list of lists.slice(1)) {
      const same = list.find(({ msn }) => msn === one.msn)!;
      const apart = (await firstShown(same)) - shown;
      // Half a frame of the slowest rendition, for the media only: dates are rounded to whole ms, which can make 34 of 33.3.
      expect(Math.abs(apart)).toBeLessThanOrEqual(500 / 15 + 1e-6);
      // Each date is off by at most half a ms.
      expect(Math.abs(same.date - one.date - apart)).toBeLessThanOrEqual(1 + 1e-6);
    }
  }
});

/** Waits until the frame has the size of `level`; the video must continue meanwhile. */
async function shows(player: HlsPlayer, level: number, width: number): Promise<void> {
  await player.page.evaluate(`hls.nextLevel = ${level}`);
  await until(`level ${level} is on show`, async () => (await player.state()).width === width, { deadlineMs: 30_000, everyMs: 100 });
}

test('hls.js switches levels down and up without a stall', async () => {
  const player = await browser.play(url('abr.m3u8'));
  await player.played(0, 30_000);
  // Waits until the initial climb is over. When hls.js returns to a level within a segment of which it has loaded a part, it continues
  // after that part, although other levels have replaced it since; without the part's keyframe the frames cannot be decoded.
  const begun = await player.played(3, 30_000);
  // hls.js sorts by bit rate: 180p, 240p, 360p, and the source, which also has 360 lines.
  for (const [level, width] of [
    [0, 320],
    [2, 640],
    [1, 426],
    [3, 640],
  ] as const) {
    await shows(player, level, width);
    await player.played(1, 15_000);
  }
  const ended = await player.state();
  expect(ended.stalls - begun.stalls, ended.errors.join('\n')).toBe(0);
  expect(ended.restarts).toBe(0);
  expect(ended.errors.filter((error) => error.includes('fatal'))).toEqual([]);
  expect(ended.frames - begun.frames).toBeGreaterThan(0.5 * 15 * (ended.time - begun.time));
  await player.page.close();
});
