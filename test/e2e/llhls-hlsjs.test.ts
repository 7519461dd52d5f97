/** hls.js in a real browser plays what the LL-HLS publisher serves, at low latency and without holes. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EgressServer } from '../fakes/egress-server.ts';
import { encodeMedia } from '../support/encoded-media.ts';
import { LlhlsSimulation } from '../validator/llhls-simulation.ts';

const CHROMIUM = '/usr/bin/chromium';
const MEDIA_SECONDS = 40;
const PLAY_SECONDS = 16;

const PAGE = `<video id="video" muted autoplay></video><script src="/hls.js"></script><script>
  window.faults = [];
  window.hls = new Hls({ lowLatencyMode: true });
  hls.on(Hls.Events.ERROR, (_event, data) => faults.push(data.details));
  hls.loadSource('/app/stream/llhls.m3u8');
  hls.attachMedia(video);
</script>`;

interface Playback {
  time: number;
  latency: number;
  ranges: number;
  faults: string[];
  frames: number;
}

let browser: Browser;
beforeEach(async () => {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--autoplay-policy=no-user-gesture-required'] });
});
afterEach(async () => {
  await browser.close();
});

describe('hls.js', () => {
  it.each([
    { name: '30 fps, GOP 2 s', extra: ['-preset', 'ultrafast'] },
    { name: '25 fps with B-frames, GOP 1.92 s', extra: ['-preset', 'veryfast', '-r', '25', '-g', '48', '-bf', '2'] },
  ])('plays across segments with a latency below three seconds: $name', async ({ extra }) => {
    const media = encodeMedia({ video: 'libx264', audio: 'aac', seconds: MEDIA_SECONDS, extra });
    const simulation = new LlhlsSimulation(media.tracks);
    const script = await readFile(fileURLToPath(import.meta.resolve('hls.js/dist/hls.js')));
    const server = new EgressServer(simulation, {
      '/': { type: 'text/html', body: PAGE },
      '/hls.js': { type: 'text/javascript', body: script },
    });
    try {
      const url = await server.listen();
      server.play(media.packets);
      const page = await browser.newPage();
      await page.goto(`${url}/`);
      await page.waitForFunction(`video.currentTime > ${PLAY_SECONDS}`, undefined, { timeout: (PLAY_SECONDS + 20) * 1000 });
      const playback = (await page.evaluate(
        `({ time: video.currentTime, latency: hls.latency, ranges: video.buffered.length, faults, frames: video.getVideoPlaybackQuality().totalVideoFrames })`,
      )) as Playback;
      expect(playback.faults).toEqual([]);
      expect(playback.ranges).toBe(1);
      expect(playback.latency).toBeLessThan(3);
      expect(playback.frames).toBeGreaterThan(300);
    } finally {
      await server.close();
    }
  });
});
