/** A ladder of two independent encoders: aligned by the wall clock, switched by hls.js. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { type HlsPlayer, openBrowser, type PlayerBrowser } from '../harness/browser.ts';
import { clockLead, leadDistance } from '../harness/clock-times.ts';
import { until } from '../harness/poll.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { fetchText } from '../harness/viewer.ts';

const CHANNELS = `${apiPath.app('default', 'app')}/multiplexChannels`;
const GOP = 30;
const RUNGS = [
  { name: 'high', width: 640, height: 360, videoKbps: 800 },
  { name: 'low', width: 320, height: 180, videoKbps: 200 },
] as const;

let folder: string;
let server: TestServer;
let browser: PlayerBrowser;
const encoders: FfmpegPublisher[] = [];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-mux-'));
  const providers = `<Multiplex><MuxFilesDir>${folder}</MuxFilesDir></Multiplex>`;
  server = await startServer({ providers, segmentDuration: 2, segmentCount: 10 });
  for (const { name, ...media } of RUNGS) {
    const encoder = publish({ url: server.rtmp(name), gop: GOP, withClock: true, ...media });
    encoders.push(encoder);
    // The second encoder begins in the middle of a GOP of the first.
    await encoder.sent(GOP * 1.5);
  }
  browser = await openBrowser();
  // The wall clock is estimated from some seconds of media, which is better than the first packet.
  await encoders[1]?.sent(8 * 30, 30_000);
});

afterAll(async () => {
  await browser?.close();
  await Promise.all(encoders.map((encoder) => encoder.stop()));
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

function ladder(name: string): object {
  return {
    outputStream: { name },
    sourceStreams: RUNGS.map((rung) => ({
      name: rung.name,
      url: `stream://default/app/${rung.name}`,
      trackMap: [
        { sourceTrackName: 'bypass_video', newTrackName: `${rung.name}_video`, bitrateConf: rung.videoKbps * 1000, framerateConf: 30 },
        ...(rung.name === 'high' ? [{ sourceTrackName: 'bypass_audio', newTrackName: 'sound', bitrateConf: 96_000 }] : []),
      ],
    })),
    playlists: [
      {
        name: 'abr',
        fileName: 'abr',
        options: { webrtcAutoAbr: true, hlsChunklistPathDepth: 0 },
        renditions: RUNGS.map((rung) => ({ name: rung.name, video: `${rung.name}_video`, audio: 'sound' })),
      },
      ...RUNGS.map((rung) => ({ name: rung.name, fileName: rung.name, renditions: [{ name: rung.name, video: `${rung.name}_video` }] })),
    ],
  };
}

/** Waits until the frame has the size of `level`; the video must go on meanwhile. */
async function shows(player: HlsPlayer, level: number, width: number): Promise<void> {
  await player.page.evaluate(`hls.nextLevel = ${level}`);
  await until(`level ${level} is on show`, async () => (await player.state()).width === width, { deadlineMs: 30_000, everyMs: 100 });
}

test('video of both encoders is at the same media time, and hls.js switches between them without a stall', async () => {
  await server.api.create(CHANNELS, ladder('abr'));
  await until('the ladder', async () => (await fetchText(server.http('abr', 'abr.m3u8'))).includes('320x180'), { deadlineMs: 30_000 });
  const leads = await Promise.all(RUNGS.map(({ name }) => clockLead(server.http('abr', `${name}.m3u8`), 4)));
  const apart = leadDistance(leads[0] ?? 0, leads[1] ?? 0);
  // The start of an RTMP stream is delayed by less than this even on a busy machine; the delays of encoders and sockets are included.
  expect(apart).toBeLessThan(500);

  const player = await browser.play(server.http('abr', 'abr.m3u8'));
  await player.played(0, 30_000);
  const begun = await player.played(3, 30_000);
  // hls.js sorts by bit rate. When it returns to a level within a segment of which it has loaded a part, it continues after that part,
  // although the other level has replaced it since; two segments between switches avoid that.
  for (const [level, width] of [
    [0, 320],
    [1, 640],
    [0, 320],
    [1, 640],
  ] as const) {
    await shows(player, level, width);
    await player.played(4, 30_000);
  }
  const ended = await player.state();
  expect(ended.stalls - begun.stalls, ended.errors.join('\n')).toBe(0);
  expect(ended.restarts).toBe(0);
  expect(ended.errors.filter((error) => error.includes('fatal'))).toEqual([]);
  await player.page.close();
});
