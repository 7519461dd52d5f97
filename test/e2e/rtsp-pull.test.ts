/** Streams pulled from a real RTSP server through the API, watched as LL-HLS. */
import net from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { BlackHole } from '../fakes/black-hole.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { decode, probe } from '../harness/probe.ts';
import { type RtspTestServer, startRtspServer } from '../harness/rtsp-server.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const STREAMS = `${apiPath.app('default', 'app')}/streams`;
/** The macro for the name of the inbound stream. */
const ORIGIN_NAME = `\${OriginStreamName}`;
/** Limit of waits for other programs, ms. */
const DEADLINE_MS = 40_000;
const CREATED = { status: 201, body: { message: 'Created', statusCode: 201 } };

let server: TestServer;
let source: RtspTestServer;

beforeAll(async () => {
  source = await startRtspServer();
  server = await startServer({ segmentDuration: 1 });
});

afterAll(async () => {
  await server?.close();
  await source?.stop();
});

async function pull(name: string, urls: readonly string[], properties: object = {}) {
  onTestFinished(async () => {
    await server.api.call('DELETE', apiPath.stream(name));
  });
  return await server.api.call('POST', STREAMS, { name, urls, properties });
}

async function information(name: string): Promise<StreamInformation> {
  return await server.api.get<StreamInformation>(apiPath.stream(name));
}

async function playable(name: string) {
  return await until(`${name} to be playable`, async () => {
    const probed = await probe(server.http(name, 'llhls.m3u8'));
    return probed.video === undefined ? null : probed;
  });
}

test('H.264 and AAC over the connection itself are pulled and play without decoding errors', async () => {
  expect(await pull('cam', [source.url('h264-aac')])).toEqual(CREATED);
  const { input } = await information('cam');
  expect(input).toMatchObject({ sourceType: 'RtspPull', sourceUrl: source.url('h264-aac') });
  const probed = await playable('cam');
  expect(probed.video).toMatchObject({ codec_name: 'h264', width: 320, height: 180 });
  expect(probed.audio).toMatchObject({ codec_name: 'aac', sample_rate: '48000', channels: 2 });
  const decoded = await decode(server.http('cam', 'llhls.m3u8'), 3);
  expect(decoded.errors).toBe('');
  expect(decoded.frames).toBeGreaterThan(50);
});

test('a server that sends datagrams only is pulled too', async () => {
  expect(await pull('datagrams', [source.url('udp')], { ignoreRtcpSRTimestamp: true })).toEqual(CREATED);
  const probed = await playable('datagrams');
  expect(probed.video).toMatchObject({ codec_name: 'h264' });
  expect(probed.audio).toMatchObject({ codec_name: 'aac' });
});

test('B-frames are decoded in their order', async () => {
  expect(await pull('b', [source.url('b-frames')])).toEqual(CREATED);
  await playable('b');
  const decoded = await decode(server.http('b', 'llhls.m3u8'), 3);
  expect(decoded.errors).toBe('');
});

test('H.265 and Opus are pulled', async () => {
  expect(await pull('hevc', [source.url('h265-opus')])).toEqual(CREATED);
  const tracks = await until('both tracks', async () => {
    const found = (await information('hevc')).input.tracks;
    return found.some(({ video }) => video?.codec === 'H265' && video.framerateLatest > 0) ? found : null;
  });
  expect(tracks.find(({ audio }) => audio !== undefined)?.audio).toMatchObject({ codec: 'OPUS', samplerate: 48_000 });
});

test('G.711 is encoded to AAC; without an encode for it the frame plays alone', async () => {
  await server.api.create('/v1/vhosts', [{ name: 'coded', host: { names: ['localhost'] } }]);
  const encodes = {
    videos: [{ name: 'video', bypass: true }],
    audios: [{ name: 'aac', codec: 'aac', samplerate: 48_000, bitrate: 64_000, channel: 1 }],
  };
  const profile = { name: 'coded', outputStreamName: ORIGIN_NAME, encodes };
  const publishers = { llhls: { chunkDuration: 0.5, segmentDuration: 1, segmentCount: 5 } };
  const application = { name: 'made', type: 'live', providers: { rtspPull: {} }, publishers, outputProfiles: { outputProfile: [profile] } };
  await server.api.create(`${apiPath.vhost('coded')}/apps`, [application]);
  await server.api.create(`${apiPath.app('coded', 'made')}/streams`, { name: 'phone', urls: [source.url('g711')] });
  const phone = () => server.api.get<StreamInformation>(apiPath.stream('phone', 'made', 'coded'));
  const sound = await until('the track', async () => (await phone()).input.tracks.find(({ audio }) => audio !== undefined)?.audio);
  expect(sound).toMatchObject({ codec: 'PCMU', samplerate: 8000, channel: 1 });
  // The transcoder process alone takes seconds to start on a loaded machine.
  const coded = async () => (await phone()).outputs.some(({ tracks }) => tracks.some(({ audio }) => audio?.codec === 'AAC'));
  await until('the encoder', coded, { deadlineMs: DEADLINE_MS });
  const url = server.http('phone', 'llhls.m3u8', 'made', 'localhost');
  const begun = async () => /^\S*chunklist\S*audio/m.test(await (await fetch(url)).text());
  await until('the playlist', begun, { deadlineMs: DEADLINE_MS });
  const probed = await until(
    'audio and video',
    async () => {
      const found = await probe(url);
      return found.audio === undefined || found.video === undefined ? null : found;
    },
    { deadlineMs: DEADLINE_MS },
  );
  expect(probed.audio).toMatchObject({ codec_name: 'aac', sample_rate: '48000' });
  expect((await decode(url, 3)).errors).toBe('');

  expect(await pull('mute', [source.url('g711')])).toEqual(CREATED);
  expect((await playable('mute')).audio).toBeUndefined();
});

test.each(['digest', 'basic'] as const)('%s authentication is answered, and a wrong password is a 502', async (method) => {
  expect((await pull('wrong', [source.guarded(method, 'user:no', 'h264')])).status).toBe(502);
  expect(await pull('right', [source.guarded(method, 'user:pass%3Aword', 'h264')])).toEqual(CREATED);
  expect((await information('right')).input.sourceUrl).not.toContain('pass');
});

test('a missing path, a closed port, a silent host and a host that drops packets are 502 within the limit', async () => {
  const silent = net.createServer();
  silent.listen(0, '127.0.0.1');
  const hole = await BlackHole.start();
  await until('the silent server to listen', () => silent.listening);
  onTestFinished(async () => {
    silent.close();
    await hole.stop();
  });
  const hosts = [(silent.address() as net.AddressInfo).port, hole.port].map((port) => `rtsp://127.0.0.1:${port}/x`);
  const urls = [source.url('nothing'), 'rtsp://127.0.0.1:1/x', ...hosts, 'rtsp://name.invalid/x', 'http://h/x'];
  // The client itself would give up only after ten seconds.
  const answers = await Promise.all(urls.map(async (url, index) => [url, (await pull(`none${index}`, [url])).status]));
  expect(answers).toEqual(urls.map((url) => [url, 502]));
  const streams = await server.api.get<string[]>(STREAMS);
  expect(streams.filter((name) => name.startsWith('none'))).toEqual([]);
});

test('the next URL is used when the first cannot be pulled', async () => {
  expect(await pull('second', ['rtsp://127.0.0.1:1/x', source.url('h264')])).toEqual(CREATED);
  expect((await information('second')).input.sourceUrl).toBe(source.url('h264'));
});

test('a persistent stream survives its source and kill -9; the other stream ends with its source', async () => {
  const own = await startRtspServer();
  onTestFinished(async () => {
    await own.stop();
  });
  expect(await pull('passing', [own.url('h264')])).toEqual(CREATED);
  expect(await pull('lasting', [own.url('h264'), source.url('h264')], { persistent: true })).toEqual(CREATED);
  await own.stop();
  await until('the stream to move to its second URL', async () => (await information('lasting')).input.sourceUrl === source.url('h264'));
  await until('the other stream to be given up', async () => !(await server.api.get<string[]>(STREAMS)).includes('passing'));
  await server.kill();
  await server.restart();
  expect(await server.api.get(STREAMS)).toEqual(['lasting']);
  await until('the pulled stream delivers again', async () =>
    (await information('lasting')).input.tracks.some(({ video }) => (video?.framerateLatest ?? 0) > 0),
  );
  expect((await server.api.call('DELETE', apiPath.stream('lasting'))).status).toBe(200);
  await server.restart();
  expect(await server.api.get(STREAMS)).toEqual([]);
});
