/** Multiplex channels at the real server: their files, sources that come and go, and their viewers meanwhile. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { marked, mediaPlaylists } from '../harness/event-viewer.ts';
import { until } from '../harness/poll.ts';
import { decode, probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { fetchText } from '../harness/viewer.ts';
import { openWebrtcBrowser, type WebrtcBrowser } from '../harness/webrtc-browser.ts';

const CHANNELS = `${apiPath.app('default', 'app')}/multiplexChannels`;
const SMALL = { width: 320, height: 180, videoKbps: 200 };
const OTHER = { width: 426, height: 240, videoKbps: 300 };

interface Channel {
  readonly state: string;
  readonly pullingMessage?: string;
}

let folder: string;
let server: TestServer;
let browser: WebrtcBrowser;
const encoders = new Map<string, FfmpegPublisher>();

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-mux-'));
  const schedule = `<Schedule><MediaRootDir>${folder}</MediaRootDir><ScheduleFilesDir>${folder}</ScheduleFilesDir></Schedule>`;
  const providers = `<Multiplex><MuxFilesDir>${folder}</MuxFilesDir></Multiplex>${schedule}`;
  server = await startServer({ providers, webrtc: {}, segmentDuration: 1, segmentCount: 10 });
  browser = await openWebrtcBrowser();
  await encode('high');
  await encode('low');
});

afterAll(async () => {
  await browser?.close();
  await Promise.all([...encoders.values()].map((encoder) => encoder.stop()));
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Publishes `name`, in a small size for `low`; resolves when a second has been sent. */
async function encode(name: string, size: object = name === 'low' ? SMALL : {}): Promise<void> {
  const encoder = publish({ url: server.rtmp(name), gop: 30, ...size });
  encoders.set(name, encoder);
  await encoder.sent(30);
}

const source = (name: string, ...tracks: readonly string[]): object => ({
  name,
  url: `stream://default/app/${name}`,
  trackMap: tracks.map((track) => ({ sourceTrackName: `bypass_${track}`, newTrackName: `${name}_${track}` })),
});

const channel = (name: string): Promise<Channel> => server.api.get<Channel>(`${CHANNELS}/${name}`);

async function state(name: string, wanted: string): Promise<Channel> {
  return await until(`${name} to be ${wanted}`, async () => {
    const now = await channel(name);
    return now.state === wanted ? now : null;
  });
}

test('a viewer over WebRTC keeps one rendition when the encoder of the other is killed, and gets both when it returns', async () => {
  await server.api.create(CHANNELS, {
    outputStream: { name: 'tv' },
    sourceStreams: [source('high', 'video', 'audio'), source('low', 'video')],
    playlists: [
      {
        name: 'abr',
        fileName: 'abr',
        renditions: [
          { name: 'high', video: 'high_video', audio: 'high_audio' },
          { name: 'low', video: 'low_video', audio: 'high_audio' },
        ],
      },
      { name: 'low', fileName: 'low', renditions: [{ name: 'low', video: 'low_video' }] },
    ],
  });
  const { input } = await until('the stream', () => server.api.get<StreamInformation>(apiPath.stream('tv')));
  expect(input.sourceType).toBe('Multiplex');
  expect((await channel('tv')).state).toBe('Playing');
  const page = await browser.open();
  await page.whep(`http://127.0.0.1:${server.ports.http}/app/tv/abr?direction=whep`, ['video', 'audio']);
  const seen = await page.decoded(30);
  const low = server.http('tv', 'low.m3u8');
  const line = await until('the low rung', async () => /^[^#\n].*$/m.exec(await fetchText(low))?.[0]);

  await encoders.get('low')?.kill();
  const waiting = await state('tv', 'Pulling');
  expect(waiting.pullingMessage).toBe('Multiplex Channel : #default#app/tv: Wait for stream low');
  const during = await page.decoded(seen.video.framesDecoded + 60);
  expect(during.connection).toBe('connected');
  // LL-HLS players get an error at once, so that they try elsewhere.
  await until('a segment marked as a gap', async () => (await fetchText(new URL(line, low).href)).includes('#EXT-X-GAP'), {
    deadlineMs: 40_000,
  });

  await encode('low', OTHER);
  await state('tv', 'Playing');
  const after = await page.decoded(during.video.framesDecoded + 60);
  expect(after.connection).toBe('connected');
  await until('the low rung to play', async () => (await decode(low, 2)).frames > 30, { deadlineMs: 60_000 });
  // As soon as the earlier media is no longer listed.
  const sees = async () => (await probe(low)).video?.width === OTHER.width;
  await until('the new size', sees, { deadlineMs: 60_000 });
  await page.page.close();
});

test('a channel ends with its only source, and restarts with it', async () => {
  await encode('alone');
  await server.api.create(CHANNELS, { outputStream: { name: 'copy' }, sourceStreams: [source('alone', 'video', 'audio')] });
  await until('the copy', () => server.api.get<StreamInformation>(apiPath.stream('copy')));
  const { video, audio } = await until('the copy to play', () => probe(server.http('copy', 'llhls.m3u8')), { deadlineMs: 40_000 });
  expect([video?.codec_name, audio?.codec_name]).toEqual(['h264', 'aac']);
  await encoders.get('alone')?.kill();
  await state('copy', 'Pulling');
  expect(await server.api.get<string[]>(`${apiPath.app('default', 'app')}/streams`)).not.toContain('copy');
  await encode('alone');
  await state('copy', 'Playing');
  expect((await until('the copy plays again', () => probe(server.http('copy', 'llhls.m3u8')), { deadlineMs: 40_000 })).video?.width).toBe(
    640,
  );
});

test('the output profiles of another application are made of a channel', async () => {
  await server.api.create('/v1/vhosts', [{ name: 'second', host: { names: ['localhost'] } }]);
  const encodes = {
    videos: [{ name: 'small', codec: 'h264', width: 320, height: 180, framerate: 30, bitrate: 300_000, preset: 'faster' }],
  };
  const application = {
    name: 'made',
    type: 'live',
    providers: { multiplex: { muxFilesDir: path.join(folder, 'second') } },
    publishers: { llhls: { segmentDuration: 1 } },
    outputProfiles: { outputProfile: [{ name: 'p', outputStreamName: `\${OriginStreamName}`, encodes }] },
  };
  await server.api.create(`${apiPath.vhost('second')}/apps`, [application]);
  await server.api.create(`${apiPath.app('second', 'made')}/multiplexChannels`, {
    outputStream: { name: 'small', bypassTranscoder: false },
    sourceStreams: [source('high', 'video')],
  });
  const url = server.http('small', 'llhls.m3u8', 'made', 'localhost');
  expect((await until('the encoded copy', () => probe(url), { deadlineMs: 60_000 })).video?.width).toBe(320);
});

test('a break of a stream is in the playlists of a multiplex channel and of a scheduled channel with that stream', async () => {
  const app = apiPath.app('default', 'app');
  await server.api.create(CHANNELS, { outputStream: { name: 'made' }, sourceStreams: [source('high', 'video')] });
  const programs = [{ name: 'day', scheduled: new Date(Date.now() - 60_000).toISOString(), items: [{ url: 'stream://default/app/high' }] }];
  await server.api.create(`${app}/scheduledChannels`, { stream: { name: 'played' }, programs });
  const lists = async () => {
    const all = await Promise.all(
      ['high', 'made', 'played'].map((name) => mediaPlaylists(server.http(name, 'llhls.m3u8')).catch(() => [])),
    );
    return all.map(([video = '']) => video);
  };
  const wait = { deadlineMs: 40_000 };
  await until('all playlists', async () => (await lists()).every((text) => text.includes('#EXTINF')) || null, wait);
  await server.api.create(`${apiPath.stream('high')}:sendEvent`, { eventFormat: 'cue', events: [{ cueType: 'out', duration: 2000 }] });
  const ended = await until(
    'the end of the break',
    async () => {
      const all = (await lists()).map((text) => marked(text).filter(({ line }) => !line.includes('CONT')));
      return all.every((each) => each.length === 2) ? all : null;
    },
    wait,
  );
  for (const [out, back] of ended) {
    expect([out?.line, back?.line]).toEqual(['#EXT-X-CUE-OUT:DURATION=2.000', '#EXT-X-CUE-IN']);
    // The keyframes of the encoder are a second apart.
    expect(Math.abs(Date.parse(back?.date ?? '') - Date.parse(out?.date ?? '') - 2000)).toBeLessThan(100);
  }
  await server.api.call('DELETE', `${app}/scheduledChannels/played`);
  await server.api.call('DELETE', `${CHANNELS}/made`);
});

test('a file dropped into the folder creates a channel, and its removal ends the channel', async () => {
  const file = path.join(folder, 'dropped.mux');
  const track = '<Track><SourceTrackName>bypass_video</SourceTrackName><NewTrackName>v</NewTrackName></Track>';
  const url = 'stream://default/app/high';
  writeFileSync(
    file,
    `<Multiplex><OutputStream><Name>dropped</Name></OutputStream><SourceStreams><SourceStream><Name>s</Name><Url>${url}</Url>
<TrackMap>${track}</TrackMap></SourceStream></SourceStreams></Multiplex>`,
  );
  await until('the stream of the file', () => server.api.get<StreamInformation>(apiPath.stream('dropped')));
  expect((await channel('dropped')).state).toBe('Playing');
  rmSync(file);
  await until('the stream to end', async () => (await server.api.call('GET', apiPath.stream('dropped'))).status === 404);
  expect(await server.api.get<string[]>(CHANNELS)).not.toContain('dropped');
});

test('channels are restored after the server was killed, and play when their sources return', async () => {
  const before = await server.api.get<string[]>(CHANNELS);
  expect(before).toContain('tv');
  await server.kill();
  await server.restart();
  expect(await server.api.get<string[]>(CHANNELS)).toEqual(before);
  expect((await channel('tv')).state).toBe('Pulling');
  await Promise.all(['high', 'low'].map((name) => encoders.get(name)?.stop()));
  await encode('high');
  await until('the channel waits for the other source only', async () =>
    (await channel('tv')).pullingMessage?.endsWith('Wait for stream low'),
  );
  await encode('low');
  await state('tv', 'Playing');
  expect((await server.api.get<string[]>(`${apiPath.app('default', 'app')}/streams`)).sort()).toContain('tv');
});
