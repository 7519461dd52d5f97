/** Streams pushed over RTMP to receivers by other authors, and to a second server. */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { RtmpProvider } from '../../src/services/rtmp/rtmp-provider.ts';
import { systemClock } from '../../src/util/clock.ts';
import { FakeIngestGate } from '../fakes/fake-ingest-gate.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { countFrames, probe } from '../harness/probe.ts';
import { type FfmpegPublisher, type PublishOptions, publish } from '../harness/publisher.ts';
import { type PushTask, pushes, startPush, stopPush } from '../harness/push.ts';
import { startRtmpNginx } from '../harness/rtmp-nginx.ts';
import { ROOT, startServer, type TestServer } from '../harness/server.ts';

/** A self-signed certificate for localhost. */
const CERTIFICATE = path.join(ROOT, 'test/fixtures/tls');

let server: TestServer;
let folder: string;

beforeAll(async () => {
  server = await startServer({ push: '' });
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-push-'));
});

afterAll(async () => {
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

function encode(stream: string, options: Partial<PublishOptions> = {}): FfmpegPublisher {
  const encoder = publish({ url: server.rtmp(stream), width: 320, height: 180, videoKbps: 300, ...options });
  onTestFinished(async () => {
    await encoder.stop();
  });
  return encoder;
}

/** ffmpeg as an RTMP server that accepts one publisher and records it. */
function listen(port: number, file: string): Child {
  const input = ['-f', 'flv', '-listen', '1', '-i', `rtmp://127.0.0.1:${port}/live/key`];
  const child = new Child(requireProgram('ffmpeg'), ['-v', 'warning', '-nostdin', ...input, '-c', 'copy', '-y', file], {
    name: 'receiver',
  });
  onTestFinished(async () => {
    await child.stop('SIGINT');
  });
  return child;
}

async function pushing(id: string): Promise<PushTask> {
  return await until(`push '${id}' to run`, async () =>
    (await pushes(server.api)).find((task) => task.id === id && task.state === 'pushing'),
  );
}

test('every frame of a stream that starts later reaches the receiver', async () => {
  const [port = 0] = await freePorts(1);
  const file = path.join(folder, 'ffmpeg.mkv');
  const receiver = listen(port, file);
  await startPush(server.api, { id: 'later', stream: 'later', protocol: 'rtmp', url: `rtmp://127.0.0.1:${port}/live`, streamKey: 'key' });
  expect(await pushes(server.api)).toMatchObject([{ id: 'later', state: 'ready', sentBytes: 0 }]);
  const encoder = encode('later');
  await pushing('later');
  await encoder.sent(150);
  await encoder.stop();
  await receiver.ended(15_000);
  // ffmpeg reports the end of a connection as an input error; no other complaint is allowed.
  expect(receiver.output.replace(/^rtmp:.*Input\/output error$/m, '').trim()).toBe('');
  expect(await countFrames(file)).toBe(encoder.progress?.frames);
  const probed = await probe(file);
  expect(probed).toMatchObject({
    video: { codec_name: 'h264', width: 320 },
    audio: { codec_name: 'aac', sample_rate: '48000' },
  });
  // The encoder begins both at once; the first audio may be up to a frame short.
  expect(Math.abs(Number(probed.video?.start_time) - Number(probed.audio?.start_time))).toBeLessThan(0.025);
  const [task] = await pushes(server.api);
  expect(task).toMatchObject({ state: 'ready', sequence: 1 });
  expect(task?.totalsentBytes).toBeGreaterThan(100_000);
  await stopPush(server.api, 'later');
  expect(await pushes(server.api)).toEqual([]);
});

test('a second server plays the pushed stream, and the counters grow', async () => {
  const second = await startServer({ segmentDuration: 1 });
  onTestFinished(async () => {
    await second.close();
  });
  encode('relayed');
  await startPush(server.api, {
    ...{ id: 'relay', stream: 'relayed', protocol: 'rtmp', url: `rtmp://127.0.0.1:${second.ports.rtmp}/app`, streamKey: 'copy' },
    variantNames: ['bypass_video', 'bypass_audio'],
  });
  await pushing('relay');
  const { input } = await until('the copy', () => second.api.get<StreamInformation>(apiPath.stream('copy')));
  expect(input.tracks.map(({ type }) => type)).toEqual(expect.arrayContaining(['Video', 'Audio']));
  const probed = await until('the copy to play', async () => probe(second.http('copy', 'llhls.m3u8')));
  expect(probed.video).toMatchObject({ width: 320, height: 180 });
  const statistics = await server.api.get<{ connections: { push: number }; totalBytesOut: number }>(apiPath.stats('relayed'));
  expect(statistics.connections.push).toBe(1);
  const [task] = await pushes(server.api);
  expect(statistics.totalBytesOut).toBeGreaterThan(10_000);
  expect(task?.sentBytes).toBeGreaterThan(10_000);
  await stopPush(server.api, 'relay');
  await until('the copy to end', async () => (await second.api.call('GET', apiPath.stream('copy'))).status === 404);
});

test('nginx receives a stream with every frame', async () => {
  const nginx = await startRtmpNginx(folder);
  onTestFinished(async () => {
    await nginx.child.stop();
  });
  await startPush(server.api, {
    id: 'nginx',
    stream: 'kept',
    protocol: 'rtmp',
    url: `rtmp://127.0.0.1:${nginx.port}/live`,
    streamKey: 'kept',
  });
  const encoder = encode('kept');
  await pushing('nginx');
  await encoder.sent(150);
  await encoder.stop();
  await until('the task to wait again', async () =>
    (await pushes(server.api)).some(({ id, state }) => id === 'nginx' && state === 'ready'),
  );
  await stopPush(server.api, 'nginx');
  const file = path.join(nginx.recordings, 'kept.flv');
  await until('the last frame', async () => (await countFrames(file)) === encoder.progress?.frames);
  expect(await probe(file)).toMatchObject({ video: { codec_name: 'h264', width: 320 }, audio: { codec_name: 'aac' } });
});

test('a server with a trusted certificate receives streams over TLS', async () => {
  const [cert, key] = ['cert', 'key'].map((name) => readFileSync(`${CERTIFICATE}/${name}.pem`, 'utf8')) as [string, string];
  const tls = [{ hostNames: ['localhost'], cert, key }];
  const gate = new FakeIngestGate();
  const receiver = new RtmpProvider({ gate, logger: new RecordingLogger(), clock: systemClock, host: '127.0.0.1', port: 0, tls });
  await receiver.start();
  const sender = await startServer({ push: '', env: { NODE_EXTRA_CA_CERTS: `${CERTIFICATE}/cert.pem` } });
  onTestFinished(async () => {
    await sender.close();
    await receiver.stop();
  });
  const encoder = publish({ url: sender.rtmp('secret'), width: 320, height: 180 });
  onTestFinished(async () => {
    await encoder.stop();
  });
  const url = `rtmps://localhost:${receiver.port}/app`;
  await startPush(sender.api, { id: 'tls', stream: 'secret', protocol: 'rtmp', url, streamKey: 'k' });
  const stream = await gate.stream();
  await stream.until(({ packets }) => packets.length > 60);
  expect(stream.name).toBe('k');
});

test('five receivers get every frame of one stream, although a sixth does not read', async () => {
  const ports = await freePorts(5);
  const stalled = createServer((socket) => socket.pause());
  stalled.listen(0, '127.0.0.1');
  await once(stalled, 'listening');
  onTestFinished(() => {
    stalled.close();
  });
  const receivers = ports.map((port) => ({ file: path.join(folder, `five-${port}.mkv`), port }));
  const children = receivers.map(({ port, file }) => listen(port, file));
  const targets = [...ports, (stalled.address() as AddressInfo).port];
  for (const port of targets) {
    await startPush(server.api, {
      id: `to-${port}`,
      stream: 'five',
      protocol: 'rtmp',
      url: `rtmp://127.0.0.1:${port}/live`,
      streamKey: 'key',
    });
  }
  const encoder = encode('five');
  await Promise.all(ports.map((port) => pushing(`to-${port}`)));
  await encoder.sent(120);
  await encoder.stop();
  await Promise.all(children.map((child) => child.ended(15_000)));
  const counts = await Promise.all(receivers.map(({ file }) => countFrames(file)));
  expect(counts).toEqual(ports.map(() => encoder.progress?.frames));
  for (const port of targets) await stopPush(server.api, `to-${port}`);
});

test('a map file next to Server.xml pushes the streams it names', async () => {
  const sender = await startServer({ push: '<StreamMap><Enable>true</Enable><Path>push-map.xml</Path></StreamMap>' });
  onTestFinished(async () => {
    await sender.close();
  });
  const [port = 0] = await freePorts(1);
  const url = `<Protocol>rtmp</Protocol><Url>rtmp://127.0.0.1:${port}/live</Url><StreamKey>key</StreamKey>`;
  const map = `<PushInfo><Push><Enable>true</Enable><StreamName>map*</StreamName>${url}</Push></PushInfo>`;
  writeFileSync(path.join(sender.folder, 'push-map.xml'), map);
  const file = path.join(folder, 'mapped.mkv');
  const receiver = listen(port, file);
  const encoder = publish({ url: sender.rtmp('mapped'), width: 320, height: 180 });
  onTestFinished(async () => {
    await encoder.stop();
  });
  await until('the push of the map', async () => (await pushes(sender.api)).find(({ state, isConfig }) => state === 'pushing' && isConfig));
  await encoder.sent(60);
  await encoder.stop();
  await receiver.ended(15_000);
  expect(await countFrames(file)).toBe(encoder.progress?.frames);
  expect(await pushes(sender.api)).toEqual([]);
});

test('a refused connection is reported, and the task connects when the receiver listens', async () => {
  const [port = 0] = await freePorts(1);
  encode('waiting');
  await startPush(server.api, {
    id: 'patient',
    stream: 'waiting',
    protocol: 'rtmp',
    url: `rtmp://127.0.0.1:${port}/live`,
    streamKey: 'key',
  });
  const failed = await until('the error', async () =>
    (await pushes(server.api)).find(({ id, state }) => id === 'patient' && state === 'error'),
  );
  expect(failed.reason).toMatch(/^cannot connect: .*ECONNREFUSED/);
  listen(port, path.join(folder, 'patient.mkv'));
  await pushing('patient');
  await stopPush(server.api, 'patient');
});

test('tasks survive the death of the server', async () => {
  const [port = 0] = await freePorts(1);
  await startPush(server.api, { id: 'durable', stream: 'again', protocol: 'rtmp', url: `rtmp://127.0.0.1:${port}/live`, streamKey: 'key' });
  await server.kill();
  await server.restart();
  expect(await pushes(server.api)).toMatchObject([{ id: 'durable', state: 'ready', streamKey: 'key', isConfig: false }]);
  listen(port, path.join(folder, 'durable.mkv'));
  encode('again');
  await pushing('durable');
  await stopPush(server.api, 'durable');
});
