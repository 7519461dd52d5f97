/** Unpublished streams are pulled from origins when a viewer requests them. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { decode, probe } from '../harness/probe.ts';
import { type RtspTestServer, startRtspServer } from '../harness/rtsp-server.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const STREAMS = `${apiPath.app('default', 'app')}/streams`;
/** Longer than the start of a playlist takes. */
const UNUSED_MS = 8000;

let server: TestServer;
let camera: RtspTestServer;
let media: string;
let srtPort: number;

beforeAll(async () => {
  media = mkdtempSync(path.join(tmpdir(), 'millrace-origins-'));
  const source = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30', '-f', 'lavfi', '-i', 'sine=sample_rate=48000', '-t', '4'];
  const coding = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '30', '-c:a', 'aac', '-threads', '1'];
  execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...source, ...coding, path.join(media, 'one.ts')]);
  camera = await startRtspServer();
  const [ingest = 0, egress = 0] = await freePorts(2);
  srtPort = egress;
  const closed = '127.0.0.1:1/x';
  const origins = `<Origins>
    <Properties><UnusedStreamDeletionTimeout>${UNUSED_MS}</UnusedStreamDeletionTimeout></Properties>
    <Origin><Location>/app/door</Location><StrictLocation>true</StrictLocation>
      <Pass><Scheme>rtsp</Scheme><ForwardQueryParams>false</ForwardQueryParams>
        <Urls><Url>${closed}</Url><Url>${camera.url('h264-aac').replace('rtsp://', '')}</Url></Urls></Pass></Origin>
    <Origin><Location>/app/film-</Location><Pass><Scheme>file</Scheme><Urls><Url>/</Url></Urls></Pass></Origin>
  </Origins>`;
  const fileProvider = `<RootPath>${media}</RootPath>`;
  server = await startServer({ segmentDuration: 1, fileProvider, origins, webrtc: {}, srt: { ingest, egress } });
});

afterAll(async () => {
  await server?.close();
  await camera?.stop();
  rmSync(media, { recursive: true, force: true });
});

const streams = async (): Promise<string[]> => await server.api.get<string[]>(STREAMS);

test('the first request for a playlist is held until the stream starts, and the next URL is tried after a failure', async () => {
  expect(await streams()).toEqual([]);
  const url = server.http('door', 'llhls.m3u8');
  const [one, another] = await Promise.all([fetch(url), fetch(url)]);
  expect([one?.status, another?.status]).not.toContain(404);
  expect(await streams()).toEqual(['door']);
  const { input } = await server.api.get<StreamInformation>(apiPath.stream('door'));
  expect(input).toMatchObject({ sourceType: 'RtspPull', sourceUrl: camera.url('h264-aac') });
  await until('the playlist', async () => (await fetch(url)).status === 200);
  expect((await decode(url, 2)).errors).toBe('');
});

test('a stream without an origin is 404', async () => {
  for (const stream of ['door2', 'film-nothing.ts', 'film-..%2Fsecret']) {
    expect((await fetch(server.http(stream, 'llhls.m3u8'))).status, stream).toBe(404);
  }
  // A request of a player whose stream has ended does not pull it again.
  expect((await fetch(server.http('film-one.ts', 'chunklist.m3u8?session=1'))).status).toBe(404);
  expect(await streams()).toEqual(['door']);
});

test('players over WebRTC and SRT play a stream pulled from an origin', async () => {
  const socket = new WebSocket(`ws://127.0.0.1:${server.ports.http}/app/film-one.ts`);
  const answer = new Promise<{ command?: string; code: number }>((resolve, reject) => {
    socket.on('message', (data) => resolve(JSON.parse(String(data))));
    socket.on('error', reject);
  });
  socket.on('open', () => socket.send(JSON.stringify({ command: 'request_offer' })));
  expect(await answer).toMatchObject({ command: 'offer', code: 200 });
  socket.close();
  expect(await streams()).toContain('film-one.ts');
  await server.api.call('DELETE', apiPath.stream('film-one.ts'));

  const whep = await fetch(`http://127.0.0.1:${server.ports.http}/app/film-one.ts?direction=whep`, { method: 'POST', body: 'no offer' });
  // The stream was found; only the offer is invalid.
  expect(whep.status).toBe(400);
  await server.api.call('DELETE', apiPath.stream('film-one.ts'));

  const probed = await probe(`srt://127.0.0.1:${srtPort}?streamid=default/app/film-one.ts&latency=200000`);
  expect(probed.video).toMatchObject({ codec_name: 'h264', width: 320 });
  expect(probed.audio).toMatchObject({ codec_name: 'aac' });
  await until('no stream without viewers', async () => (await streams()).length === 0, { deadlineMs: 30_000 });
});

test('an origin gets the query of the viewer without its access token', async () => {
  const token = 'a-token-of-the-site-1';
  const [source = ''] = camera.url('h264-aac').replace('rtsp://', '').split('?');
  const definition = {
    ...{ name: 'guarded', host: { names: ['guarded.test'] } },
    origins: { origin: [{ location: '/app/door', pass: { scheme: 'rtsp', urls: { url: [`${source}?x=`] } } }] },
  };
  await server.api.create('/v1/vhosts', [definition]);
  const application = {
    name: 'app',
    type: 'live',
    providers: { rtspPull: {} },
    publishers: { llhls: {} },
    playTokens: [{ name: 'site', token }],
  };
  await server.api.create(`${apiPath.vhost('guarded')}/apps`, [application]);
  const statusOf = (query: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const target = {
        host: '127.0.0.1',
        port: server.ports.http,
        path: `/app/door/llhls.m3u8?${query}`,
        headers: { host: 'guarded.test' },
      };
      get(target, (response) => resolve(response.resume().statusCode)).on('error', reject);
    });
  expect(await statusOf('seat=7')).toBe(401);
  expect(await statusOf(`seat=7&token=${token}&row=2`)).not.toBe(401);
  const { input } = await server.api.get<StreamInformation>(`${apiPath.app('guarded', 'app')}/streams/door`);
  expect(input.sourceUrl).toMatch(/\?x=.*&seat=7&row=2$/);
  await server.api.call('DELETE', apiPath.vhost('guarded'));
});
