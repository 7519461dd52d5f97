/** Streams relayed from one server to another over OVT. */
import net from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { parseResponse, serializeRequest } from '../../src/wire/ovt/message.ts';
import { OvtReader } from '../../src/wire/ovt/reader.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { dataPackets, marked, mediaPlaylists } from '../harness/event-viewer.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { decode, probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const STREAMS = `${apiPath.app('default', 'app')}/streams`;
const CREATED = { status: 201, body: { message: 'Created', statusCode: 201 } };

let origin: TestServer;
let edge: TestServer;
let encoder: FfmpegPublisher;
let ovtPort = 0;

beforeAll(async () => {
  [ovtPort = 0] = await freePorts(1);
  origin = await startServer({ ovtPort, withoutHls: true });
  edge = await startServer({ segmentDuration: 1, segmentCount: 20, hlsSegmentDuration: 1, hlsSegmentCount: 20 });
  encoder = publish({ url: origin.rtmp('live') });
  await encoder.sent(30);
});

afterAll(async () => {
  await encoder?.stop();
  await Promise.all([edge?.close(), origin?.close()]);
});

function ovt(stream: string, port = ovtPort): string {
  return `ovt://127.0.0.1:${port}/app/${stream}`;
}

async function pull(name: string, urls: readonly string[], properties: object = {}) {
  onTestFinished(async () => {
    await edge.api.call('DELETE', apiPath.stream(name));
  });
  return await edge.api.call('POST', STREAMS, { name, urls, properties });
}

async function information(server: TestServer, name: string): Promise<StreamInformation> {
  return await server.api.get<StreamInformation>(apiPath.stream(name));
}

async function playable(name: string) {
  return await until(`${name} to be playable`, async () => {
    const probed = await probe(edge.http(name, 'llhls.m3u8'));
    return probed.video === undefined ? null : probed;
  });
}

async function ovtSessions(): Promise<number> {
  const { connections } = await origin.api.get<{ connections: { ovt: number } }>(apiPath.stats('live'));
  return connections.ovt;
}

test('a relayed stream keeps its tracks and playlists and plays without decoding errors', async () => {
  expect(await pull('relayed', [ovt('live')], { relay: true })).toEqual(CREATED);
  const relayed = await information(edge, 'relayed');
  expect(relayed.input).toMatchObject({ sourceType: 'Ovt', sourceUrl: ovt('live') });
  const probed = await playable('relayed');
  expect(probed.video).toMatchObject({ codec_name: 'h264', width: 640, height: 360 });
  expect(probed.audio).toMatchObject({ codec_name: 'aac', sample_rate: '48000', channels: 2 });
  const decoded = await decode(edge.http('relayed', 'llhls.m3u8'), 3);
  expect(decoded.errors).toBe('');
  expect(decoded.frames).toBeGreaterThan(50);

  const names = ({ outputs }: StreamInformation) => outputs[0]?.tracks.map((track) => (track as { name?: string }).name);
  expect(names(await information(edge, 'relayed'))).toEqual(names(await information(origin, 'live')));
  expect(await ovtSessions()).toBe(1);
  const statistics = await edge.api.get<{ providers: { connections: { ovt: number } } }>(apiPath.stats('relayed').replace('/v1/', '/v2/'));
  expect(statistics.providers.connections.ovt).toBe(1);
  await edge.api.call('DELETE', apiPath.stream('relayed'));
  await until('the session to end', async () => (await ovtSessions()) === 0);
});

test('viewers of an edge get the breaks and tags that the origin is sent', async () => {
  expect(await pull('told', [ovt('live')], { relay: true })).toEqual(CREATED);
  const ts = edge.http('told', 'ts:playlist.m3u8');
  await until('playlists of the edge', async () => (await mediaPlaylists(ts).catch(() => null)) !== null, { deadlineMs: 30_000 });
  const send = (event: object) => origin.api.create(`${apiPath.stream('live')}:sendEvent`, event);
  await send({ eventFormat: 'id3v2', events: [{ frameType: 'TXXX', info: 'quiz', data: 'over the relay' }] });
  await send({ eventFormat: 'cue', events: [{ cueType: 'out', duration: 2000 }] });
  const [llhls, hls] = await until(
    'the end of the break',
    async () => {
      const lists = await Promise.all(
        ['llhls.m3u8', 'ts:playlist.m3u8'].map(async (file) => (await mediaPlaylists(edge.http('told', file)))[0] ?? ''),
      );
      return lists.every((list) => list.includes('#EXT-X-CUE-IN')) ? lists : null;
    },
    { deadlineMs: 30_000 },
  );
  for (const list of [llhls, hls]) {
    const lines = marked(list ?? '').filter(({ line }) => !line.includes('CONT'));
    // The origin ends the break, and the edge must not end it again.
    expect(lines.map(({ line }) => line)).toEqual(['#EXT-X-CUE-OUT:DURATION=2.000', '#EXT-X-CUE-IN']);
  }
  const uris = (hls ?? '').split('\n').filter((line) => line.endsWith('.ts'));
  const found = (await Promise.all(uris.map((uri) => dataPackets(new URL(uri, ts).href)))).flatMap(({ packets }) => packets);
  expect(found.filter(({ bytes }) => bytes.includes('over the relay'))).toHaveLength(1);
});

test('without relay the profiles of the edge apply, and several edges may play one stream', async () => {
  expect(await pull('one', [ovt('live')])).toEqual(CREATED);
  expect(await pull('two', [ovt('live')])).toEqual(CREATED);
  await playable('one');
  await playable('two');
  expect(await ovtSessions()).toBe(2);
});

test('unreachable, silent and garbage-sending hosts and missing streams are 502 within the limit', async () => {
  const hosts = { silent: () => undefined, babbling: (socket: net.Socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n') };
  const urls = [
    'ovt://127.0.0.1:1/app/live',
    'ovt://name.invalid/app/live',
    'ovt://127.0.0.1/app',
    ovt('nothing'),
    ovt('live').replace('/app/', '/none/'),
  ];
  for (const greet of Object.values(hosts)) {
    const host = net.createServer((socket) => void greet(socket.on('error', () => undefined)));
    host.listen(0, '127.0.0.1');
    await until('the host to listen', () => host.listening);
    onTestFinished(() => {
      host.close();
    });
    urls.push(ovt('live', (host.address() as net.AddressInfo).port));
  }
  for (const url of urls) {
    // The client itself would give up only after ten seconds.
    expect((await pull('none', [url])).status, url).toBe(502);
  }
  expect((await pull('none', [ovt('live'), 'rtsp://127.0.0.1/x'])).status).toBe(400);
  expect(await edge.api.get<string[]>(STREAMS)).not.toContain('none');
});

test('garbage on the port ends its own connection only', async () => {
  const socket = net.connect(ovtPort, '127.0.0.1');
  const answers: { code: number; command: string }[] = [];
  const reader = new OvtReader({ message: 10_000, media: 0 });
  socket.on('data', (data) => reader.push(data, (_type, payload) => answers.push(parseResponse(payload))));
  socket.write(serializeRequest({ id: 1, command: 'dance', target: ovt('live') }, 0));
  await until('an answer', () => answers.length === 1);
  expect(answers[0]).toMatchObject({ id: 1, command: 'dance', code: 404 });
  socket.write(Buffer.alloc(100, 0xff));
  await until('the connection to end', () => socket.closed);
  expect(answers[1]).toMatchObject({ id: 0, command: 'unknown', code: 500, message: 'Server Internals Error' });
  expect((await information(origin, 'live')).input.sourceType).toBe('Rtmp');
});

test('an edge outlives the death of its origin', async () => {
  expect(await pull('lasting', [ovt('live')], { persistent: true, relay: true })).toEqual(CREATED);
  await playable('lasting');
  await origin.kill();
  await encoder.stop();
  expect(await edge.api.get<string[]>(STREAMS)).toContain('lasting');
  await origin.restart();
  encoder = publish({ url: origin.rtmp('live') });
  await encoder.sent(60);
  const before = edge.log.length;
  await until('the edge to pull again', async () => (await ovtSessions()) === 1, { deadlineMs: 20_000 });
  const decoded = await until('frames to play again', async () => {
    const found = await decode(edge.http('lasting', 'llhls.m3u8'), 2);
    return found.frames > 30 ? found : null;
  });
  expect(decoded.errors).toBe('');
  expect(edge.log.slice(before)).not.toContain('internal error');
});
