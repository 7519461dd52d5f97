/** An encoder loses power and returns: viewers, players and recordings of its stream continue. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { countFrames, decode } from '../harness/probe.ts';
import { type FfmpegPublisher, PUBLISH_DEFAULTS, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { openWebrtcBrowser, type WebrtcBrowser } from '../harness/webrtc-browser.ts';

const APP = apiPath.app('default', 'app');
/** The macro for the name of the inbound stream. */
const STREAM_MACRO = `\${OriginStreamName}`;
const KEPT = '<SourceLoss><KeepStreamMs>60000</KeepStreamMs></SourceLoss>';

let server: TestServer;
let browser: WebrtcBrowser;
let records: string;
let encoder: FfmpegPublisher;

beforeAll(async () => {
  records = mkdtempSync(path.join(tmpdir(), 'millrace-kept-'));
  server = await startServer({ application: KEPT, webrtc: {}, recordRoot: records, segmentDuration: 1, segmentCount: 10 });
  browser = await openWebrtcBrowser();
});

afterAll(async () => {
  await browser?.close();
  await encoder?.stop();
  await server?.close();
  rmSync(records, { recursive: true, force: true });
});

/** Media sequence number of the newest segment, and whether the playlist has a discontinuity. */
async function chunklist(url: string): Promise<{ readonly last: number; readonly broken: boolean }> {
  const text = await (await fetch(url)).text();
  const first = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1]);
  return { last: first + [...text.matchAll(/^#EXTINF/gm)].length, broken: text.includes('DISCONTINUITY') };
}

/** Complaints of the decoders. */
async function decodingErrors(url: string, seconds: number): Promise<string> {
  return (await decode(url, seconds, { uneven: true })).errors;
}

test('playlist, WebRTC viewer and recording continue when a killed encoder returns', async () => {
  const frames = PUBLISH_DEFAULTS.fps * 3;
  encoder = publish({ url: server.rtmp('live') });
  await encoder.sent(frames);
  const record = { id: 'r', stream: { name: 'live' }, filePath: '/kept.mp4', infoPath: '/kept.xml' };
  await server.api.create(`${APP}:startRecord`, record);
  const page = await browser.open();
  await page.whep(`http://127.0.0.1:${server.ports.http}/app/live?direction=whep`, ['video']);
  const seen = (await page.decoded(30)).video.framesDecoded;
  const line = await until('the playlist to name the video', async () =>
    /^\S*chunklist\S*video\S*$/m.exec(await (await fetch(server.http('live', 'llhls.m3u8'))).text()),
  );
  const media = new URL(line[0], server.http('live', 'llhls.m3u8')).href;
  const before = await chunklist(media);
  const { sourceUrl } = (await server.api.get<StreamInformation>(apiPath.stream('live'))).input;

  await encoder.kill();
  await until('the server waits for another source', () => server.log.includes('ms for another source'));
  expect(await server.api.get(`${APP}/streams`)).toEqual(['live']);
  expect((await fetch(media)).status).toBe(200);
  encoder = publish({ url: server.rtmp('live') });
  await encoder.sent(frames);

  expect((await page.decoded(seen + 60)).connection).toBe('connected');
  const after = await until('new segments', async () => {
    const now = await chunklist(media);
    return now.last >= before.last + 3 ? now : null;
  });
  expect(after.broken).toBe(false);
  expect((await server.api.get<StreamInformation>(apiPath.stream('live'))).input.sourceUrl).not.toBe(sourceUrl);
  expect(await decodingErrors(server.http('live', 'llhls.m3u8'), 3)).toBe('');

  await server.api.create(`${APP}:stopRecord`, { id: 'r' });
  const file = path.join(records, 'kept.mp4');
  await until('the recording', () => existsSync(file));
  expect(await countFrames(file)).toBeGreaterThan(frames);
  expect(await decodingErrors(file, 60)).toBe('');
});

test('encoded tracks continue while a new encoder replaces a connected one', async () => {
  await server.api.create('/v1/vhosts', [{ name: 'coded', host: { names: ['localhost'] } }]);
  const encodes = {
    videos: [{ name: 'small', codec: 'h264', width: 320, height: 180, framerate: 30, bitrate: 300_000, preset: 'faster' }],
    audios: [{ name: 'sound', codec: 'aac', samplerate: 44_100, bitrate: 64_000, channel: 2 }],
  };
  const application = {
    name: 'made',
    type: 'live',
    providers: { rtmp: {} },
    publishers: { llhls: { chunkDuration: 0.5, segmentDuration: 1, segmentCount: 10 } },
    outputProfiles: { outputProfile: [{ name: 'p', outputStreamName: STREAM_MACRO, encodes }] },
    sourceLoss: { takeOver: 'replace' },
  };
  await server.api.create(`${apiPath.vhost('coded')}/apps`, [application]);
  const small = { width: 320, height: 180, videoKbps: 300 };
  const first = publish({ url: server.rtmp('live', 'made', 'localhost'), ...small });
  const url = server.http('live', 'llhls.m3u8', 'made', 'localhost');
  const playable = async () => (await fetch(url)).status === 200;
  await until('the playlist', playable, { deadlineMs: 60_000 });
  const second = publish({ url: server.rtmp('live', 'made', 'localhost'), ...small });
  try {
    await until('the first encoder to be sent away', () => first.child.exit !== null);
    const { frames, errors } = await decode(url, 4, { uneven: true });
    expect([frames > 60, errors]).toEqual([true, '']);
    expect(server.log).toContain('continues the stream');
  } finally {
    await Promise.all([first.kill(), second.stop()]);
  }
});
