/**
 * Makes the pictures of the console in docs/pictures: `node scripts/take-pictures.ts`. Uses a real server with real streams, in Chromium.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { ConsoleBrowser, type ConsolePage, type PageOptions } from '../test/harness/console-browser.ts';
import { until } from '../test/harness/poll.ts';
import { type FfmpegPublisher, publish } from '../test/harness/publisher.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { requireProgram } from './ensure-tools.ts';

const FOLDER = path.resolve(import.meta.dirname, '../docs/pictures');
const STREAMS = ['stage', 'camera-2', 'radio'];
const WATCHED = ['stage', 'camera-2'];
/** Frames after which a stream can be watched. */
const FIRST_FRAMES = 60;
/** Time for the charts to get data. */
const WATCH_MS = 60_000;
const PLAY_MS = 15_000;
const COLOURS = 64;

interface Picture {
  readonly name: string;
  readonly hash: string;
  readonly options: PageOptions;
  /** Actions before the picture is taken. */
  prepare(page: Page): Promise<void>;
}

const PICTURES: readonly Picture[] = [
  {
    name: 'console-overview.png',
    hash: '#/',
    options: { width: 1200, height: 760 },
    prepare: async (page) => {
      await page.getByRole('link', { name: 'stage', exact: true }).waitFor();
      await delay(WATCH_MS);
    },
  },
  {
    name: 'console-stream.png',
    hash: '#/streams/default/app/stage',
    options: { width: 1200, height: 900, scheme: 'dark' },
    prepare: async (page) => {
      await page.getByRole('button', { name: 'Play', exact: true }).click();
      await page.getByRole('heading', { name: 'WebRTC' }).waitFor();
      const shown =
        "Array.from(document.querySelectorAll('video')).filter((v) => v.getVideoPlaybackQuality().totalVideoFrames > 30).length";
      await until('both players', async () => Number(await page.evaluate(shown)) >= 2, { deadlineMs: 120_000 });
      await delay(PLAY_MS);
    },
  },
];

/** Reduces the colours to a palette, for fewer bytes. */
function compress(from: string, to: string): void {
  const palette = `split[a][b];[a]palettegen=max_colors=${COLOURS}:stats_mode=single[p];[b][p]paletteuse=dither=none`;
  const args = ['-v', 'error', '-y', '-i', from, '-filter_complex', palette, '-compression_level', '100', '-pred', 'mixed', to];
  const { status, stderr } = spawnSync(requireProgram('ffmpeg'), args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`ffmpeg could not write ${to}: ${stderr}`);
  console.log(`${path.basename(to)}: ${Math.round(statSync(to).size / 1024)} KiB`);
}

async function take(browser: ConsoleBrowser, server: TestServer, folder: string, { name, hash, options, prepare }: Picture): Promise<void> {
  const opened = await browser.open(`${server.api.base}/console/${hash}`, options);
  try {
    await prepare(opened.page);
    const raw = path.join(folder, name);
    await opened.page.screenshot({ path: raw });
    compress(raw, path.join(FOLDER, name));
  } finally {
    await opened.close();
  }
}

async function main(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-pictures-'));
  const server = await startServer({ webrtc: {}, segmentDuration: 2, segmentCount: 4 });
  let browser: ConsoleBrowser | null = null;
  const encoders: FfmpegPublisher[] = [];
  const watching: ConsolePage[] = [];
  try {
    for (const stream of STREAMS) encoders.push(publish({ url: server.rtmp(stream), fps: 15, gop: 15 }));
    encoders.push(publish({ url: server.rtmp('stage', 'nowhere'), fps: 15, gop: 15 }));
    browser = await ConsoleBrowser.start();
    await encoders[0]?.sent(FIRST_FRAMES);
    for (const stream of WATCHED) {
      const page = `http://127.0.0.1:${server.ports.http}/app/${stream}`;
      watching.push(await browser.open(page, { token: null, width: 640, height: 400 }));
    }
    for (const picture of PICTURES) {
      await take(browser, server, folder, picture);
      // Leaves the machine to the players of the next picture.
      for (const page of watching.splice(0)) await page.close();
    }
  } finally {
    await browser?.close();
    await Promise.all(encoders.map((encoder) => encoder.stop()));
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

await main();
