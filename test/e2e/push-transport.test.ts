/** Streams pushed as MPEG-TS over UDP and TCP, and over SRT. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { countFrames, probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { type PushTask, pushes, startPush, stopPush } from '../harness/push.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const PASSPHRASE = 'correct-horse-battery';

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

function run(program: string, args: readonly string[]): Child {
  const child = new Child(requireProgram(program), args, { name: 'receiver' });
  onTestFinished(async () => {
    await child.stop('SIGINT');
  });
  return child;
}

/** ffmpeg records `url`; it ends with the connection, or after two seconds of silence. */
function keep(url: string, file: string): Child {
  return run('ffmpeg', ['-v', 'error', '-nostdin', '-i', url, '-map', '0:v', '-map', '0:a', '-c', 'copy', '-y', file]);
}

function encode(stream: string): FfmpegPublisher {
  const encoder = publish({ url: server.rtmp(stream), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await encoder.stop();
  });
  return encoder;
}

async function pushing(id: string): Promise<PushTask> {
  return await until(`push '${id}' to run`, async () =>
    (await pushes(server.api)).find((task) => task.id === id && task.state === 'pushing'),
  );
}

/** Publishes some seconds of `stream`; returns the number of sent frames. */
async function perform(stream: string, push: string): Promise<number> {
  const encoder = encode(stream);
  await pushing(push);
  await encoder.sent(150);
  await encoder.stop();
  await until('the task to wait again', async () => (await pushes(server.api)).some(({ id, state }) => id === push && state === 'ready'));
  await stopPush(server.api, push);
  return encoder.progress?.frames ?? 0;
}

test('every frame arrives over UDP', async () => {
  const [port = 0] = await freePorts(1);
  const file = path.join(folder, 'udp.mkv');
  const receiver = keep(`udp://127.0.0.1:${port}?timeout=2000000`, file);
  await startPush(server.api, { id: 'udp', stream: 'over-udp', protocol: 'mpegts', url: `udp://127.0.0.1:${port}` });
  const sent = await perform('over-udp', 'udp');
  await receiver.ended(15_000);
  expect(await countFrames(file)).toBe(sent);
  expect(await probe(file)).toMatchObject({
    video: { codec_name: 'h264', width: 320 },
    audio: { codec_name: 'aac', sample_rate: '48000' },
  });
});

test('every frame arrives over TCP', async () => {
  const [port = 0] = await freePorts(1);
  const file = path.join(folder, 'tcp.mkv');
  const receiver = keep(`tcp://127.0.0.1:${port}?listen=1`, file);
  await startPush(server.api, { id: 'tcp', stream: 'over-tcp', protocol: 'mpegts', url: `tcp://127.0.0.1:${port}` });
  const sent = await perform('over-tcp', 'tcp');
  await receiver.ended(15_000);
  expect(await countFrames(file)).toBe(sent);
});

test('srt-live-transmit gets every frame, encrypted', async () => {
  const [port = 0] = await freePorts(1);
  const file = path.join(folder, 'srt.ts');
  const url = `srt://127.0.0.1:${port}?mode=listener&passphrase=${PASSPHRASE}`;
  const receiver = run('sh', ['-c', `exec ${requireProgram('srt-live-transmit')} -a no -q '${url}' file://con > '${file}'`]);
  const target = `srt://127.0.0.1:${port}?mode=caller&latency=200000&passphrase=${PASSPHRASE}&pbkeylen=32`;
  await startPush(server.api, { id: 'srt', stream: 'over-srt', protocol: 'srt', url: target });
  const sent = await perform('over-srt', 'srt');
  await receiver.ended(15_000);
  expect(await countFrames(file)).toBe(sent);
});

test('a second server receives a push over SRT by its stream id', async () => {
  const [ingest = 0, egress = 0] = await freePorts(2);
  const second = await startServer({ segmentDuration: 1, srt: { ingest, egress } });
  onTestFinished(async () => {
    await second.close();
  });
  encode('relayed');
  const url = `srt://127.0.0.1:${ingest}?streamid=${encodeURIComponent('default/app/copy')}`;
  await startPush(server.api, { id: 'relay', stream: 'relayed', protocol: 'srt', url });
  await pushing('relay');
  const { input } = await until('the copy', () => second.api.get<StreamInformation>(apiPath.stream('copy')));
  expect(input.sourceType).toBe('SRT');
  const probed = await until('the copy to play', async () => probe(second.http('copy', 'llhls.m3u8')));
  expect(probed.video).toMatchObject({ width: 320, height: 180 });
  await stopPush(server.api, 'relay');
});
