/** Subtitles sent by the API, as hls.js in Chromium shows them. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { openBrowser, type PlayerBrowser } from '../harness/browser.ts';
import { mediaPlaylists } from '../harness/event-viewer.ts';
import { until } from '../harness/poll.ts';
import { publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { seenCues, wallClockAt, watchCues } from '../harness/subtitle-viewer.ts';

const DEADLINE = { deadlineMs: 30_000 };
/** How far from its time a cue may be shown, ms. */
const TOLERANCE_MS = 200;

let server: TestServer;
let browser: PlayerBrowser;
const cleanups: (() => unknown)[] = [];

const RENDITIONS = `<MediaOptions><Subtitles>
    <Enable>true</Enable><DefaultLabel>English</DefaultLabel>
    <Rendition><Language>en</Language><Label>English</Label></Rendition>
    <Rendition><Language>ko</Language><Label>Korean</Label></Rendition>
  </Subtitles></MediaOptions>`;

beforeAll(async () => {
  server = await startServer({ mediaOptions: RENDITIONS, segmentCount: 20, hlsSegmentCount: 20 });
  browser = await openBrowser();
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

afterAll(async () => {
  await browser?.close();
  await server?.close();
});

async function live(name: string, playlist: string) {
  const encoder = publish({ url: server.rtmp(name) });
  cleanups.push(() => encoder.stop());
  await encoder.sent(60);
  const url = server.http(name, playlist);
  await until('playlists', async () => (await mediaPlaylists(url).catch(() => null)) !== null, DEADLINE);
  const player = await browser.play(url);
  cleanups.push(() => player.page.close());
  await player.played(1, 30_000);
  return player;
}

async function send(name: string, label: string, subtitles: readonly object[]): Promise<number> {
  const sentAt = Date.now();
  expect(
    await server.api.call('POST', `${apiPath.stream(name)}:sendSubtitles`, { format: 'webvtt', data: [{ label, subtitles }] }),
  ).toEqual({
    status: 200,
    body: { message: 'OK', statusCode: 200 },
  });
  return sentAt;
}

test.each(['llhls.m3u8', 'ts:playlist.m3u8'])('a cue is active while the frames of its time are shown, over %s', async (playlist) => {
  const name = playlist.startsWith('ts') ? 'ts' : 'll';
  const player = await live(name, playlist);
  await watchCues(player, 'Korean');
  // One that lasts over several segments, and one behind it.
  const sentAt = await send(name, 'Korean', [
    { text: '안녕 <b>a & b</b>', durationMs: 5000, settings: 'line:10%' },
    { text: 'then --> this', startOffset: 500, durationMs: 1500 },
  ]);
  await send(name, 'English', [{ text: 'nobody has chosen it' }]);
  const seen = await until(
    'both cues',
    async () => {
      const cues = await seenCues(player);
      return cues.some(({ text }) => text.startsWith('then')) ? cues : null;
    },
    DEADLINE,
  );
  const [first, second, ...more] = seen;
  expect(more).toEqual([]);
  expect(first).toMatchObject({ text: '안녕 a & b', label: 'Korean', language: 'ko', kind: 'subtitles' });
  expect(second?.text).toBe('then --> this');
  if (first === undefined || second === undefined) return;
  expect(first.end - first.start).toBeCloseTo(5, 1);
  expect(second.start - first.end).toBeCloseTo(0.5, 1);
  expect(second.end - second.start).toBeCloseTo(1.5, 1);
  for (const [cue, at] of [
    [first, sentAt],
    [second, sentAt + 5500],
  ] as const) {
    expect(Math.abs((await wallClockAt(player, cue.start)) - at)).toBeLessThan(TOLERANCE_MS);
    expect(cue.enteredAt).toBeGreaterThanOrEqual(cue.start - 0.05);
    expect(cue.enteredAt).toBeLessThan(cue.end);
  }
});
