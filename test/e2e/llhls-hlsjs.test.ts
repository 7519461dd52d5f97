/** hls.js in a real browser plays the LL-HLS publisher's stream with low latency and without gaps. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DeliveryServer } from '../fakes/delivery-server.ts';
import { encodeMedia } from '../support/encoded-media.ts';
import { LlhlsSimulation } from '../validator/llhls-simulation.ts';

const CHROMIUM = '/usr/bin/chromium';
const MEDIA_SECONDS = 110;
/** Number of windows, each judged separately, and their length in seconds. */
const WINDOWS = 4;
const WINDOW_SECONDS = 5;
/** Seconds from the encoder to the screen. */
const MAX_LATENCY = 2.5;
/** Delay of a timer on the page, ms, from which on the machine was busy with other work. */
const MACHINE_LATE_MS = 200;
/**
 * A part loaded more often than this shows a loop in hls.js. It occurs when hls.js joins in the first segment of a stream and its worker
 * starts after the parts have arrived: it plays the parts, forgets them, and requests nothing else. The server answers every request.
 */
const MAX_LOADS = 10;
const START_DEADLINE_MS = 40_000;

const PAGE = `<video id="video" muted autoplay></video><script src="/hls.js"></script><script>
  const TICK_MS = 50;
  let faults = [];
  let latencies = [];
  let lateness = 0;
  let tickedAt = performance.now();
  const loads = new Map();
  window.hls = new Hls({ lowLatencyMode: true });
  hls.on(Hls.Events.ERROR, (_event, data) => faults.push(data.details));
  hls.on(Hls.Events.FRAG_LOADED, (_event, { part }) => part && loads.set(part.url, (loads.get(part.url) ?? 0) + 1));
  hls.loadSource('/app/stream/llhls.m3u8');
  hls.attachMedia(video);
  setInterval(() => {
    const now = performance.now();
    lateness = Math.max(lateness, now - tickedAt - TICK_MS);
    tickedAt = now;
    if (hls.playingDate) latencies.push((Date.now() - hls.playingDate) / 1000);
  }, TICK_MS);
  window.look = () => {
    const sorted = latencies.toSorted((a, b) => a - b);
    const seen = { faults, lateness, loads: Math.max(0, ...loads.values()), latency: sorted[Math.floor(sorted.length / 2)] ?? null, time: video.currentTime,
      ranges: video.buffered.length, frames: video.getVideoPlaybackQuality().totalVideoFrames };
    faults = [];
    latencies = [];
    lateness = 0;
    loads.clear();
    return seen;
  };
</script>`;

/** The page's observations since the last call. */
interface Look {
  readonly faults: readonly string[];
  /** Longest delay of a timer, ms. */
  readonly lateness: number;
  /** Number of loads of the most loaded part. */
  readonly loads: number;
  /** Median; null before playback. */
  readonly latency: number | null;
  readonly time: number;
  readonly ranges: number;
  readonly frames: number;
}

let browser: Browser;
beforeEach(async () => {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--autoplay-policy=no-user-gesture-required'] });
});
afterEach(async () => {
  await browser.close();
});

async function look(page: Page): Promise<Look> {
  return await page.evaluate('look()');
}

/** Opens a new player and waits until it has reached its target latency. */
async function start(page: Page, url: string): Promise<Look> {
  await page.goto(`${url}/`);
  await page.waitForFunction('video.currentTime > 1 && video.readyState > 2 && !video.seeking', undefined, { timeout: START_DEADLINE_MS });
  return await look(page);
}

/** All faults of a window of playback. */
function problemsOf(before: Look, after: Look): string[] {
  const problems = after.faults.map((fault) => `hls.js reported ${fault}`);
  const advance = after.time - before.time;
  if (advance < WINDOW_SECONDS * 0.9) problems.push(`video advanced ${advance} s in ${WINDOW_SECONDS} s`);
  if (after.latency === null || after.latency >= MAX_LATENCY) problems.push(`latency ${after.latency} s, not below ${MAX_LATENCY} s`);
  if (after.ranges !== 1) problems.push(`${after.ranges} buffered ranges`);
  if (after.frames - before.frames < 12 * WINDOW_SECONDS) problems.push(`${after.frames - before.frames} frames shown`);
  return problems;
}

describe('hls.js', () => {
  it.each([
    { name: '30 fps, GOP 2 s', extra: ['-preset', 'ultrafast'] },
    { name: '25 fps with B-frames, GOP 1.92 s', extra: ['-preset', 'veryfast', '-r', '25', '-g', '48', '-bf', '2'] },
  ])('plays twenty seconds without a stall and with a delay below 2.5 s: $name', async ({ extra }) => {
    const media = encodeMedia({ video: 'libx264', audio: 'aac', seconds: MEDIA_SECONDS, extra });
    const simulation = new LlhlsSimulation(media.tracks);
    const script = await readFile(fileURLToPath(import.meta.resolve('hls.js/dist/hls.js')));
    const server = new DeliveryServer(simulation, {
      '/': { type: 'text/html', body: PAGE },
      '/hls.js': { type: 'text/javascript', body: script },
    });
    try {
      const url = await server.listen();
      simulation.source.startedAt = Date.now();
      server.play(media.packets);
      const page = await browser.newPage();
      let before = await start(page, url);
      let repeated = false;
      for (let window = 0; window < WINDOWS; ) {
        await page.waitForTimeout(WINDOW_SECONDS * 1000);
        const after = await look(page);
        const problems = problemsOf(before, after);
        before = after;
        // Faults of the machine prove nothing about the stream: such a window is repeated once, from the start.
        const busy = Math.max(after.lateness, server.takeLateness()) > MACHINE_LATE_MS;
        if (problems.length > 0 && (busy || after.loads > MAX_LOADS) && !repeated) {
          repeated = true;
          before = await start(page, url);
          continue;
        }
        expect(problems, `window ${window}, the machine ${busy ? 'busy' : 'idle'}: ${JSON.stringify(after)}`).toEqual([]);
        repeated = false;
        window += 1;
      }
    } finally {
      await server.close();
    }
  });
});
