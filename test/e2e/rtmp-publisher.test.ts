import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { RtmpTimeouts } from '../../src/services/rtmp/rtmp-options.ts';
import { RtmpProvider } from '../../src/services/rtmp/rtmp-provider.ts';
import { systemClock } from '../../src/util/clock.ts';
import { FakeIngestGate, type FakeIngestStream } from '../fakes/fake-ingest-gate.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';

const SECONDS = 3;
const VIDEO_SOURCE = ['-f', 'lavfi', '-i', `testsrc=size=320x180:rate=30:duration=${SECONDS}`];
const AUDIO_SOURCE = ['-f', 'lavfi', '-i', `sine=frequency=440:sample_rate=48000:duration=${SECONDS}`];
const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '30', '-bf', '2', '-b:v', '400k'];
const AAC = ['-c:a', 'aac', '-ac', '2', '-b:a', '96k'];

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startProvider(tls?: { key: string; cert: string }, timeouts: Partial<RtmpTimeouts> = {}) {
  const gate = new FakeIngestGate();
  const logger = new RecordingLogger();
  const provider = new RtmpProvider({
    gate,
    logger,
    clock: systemClock,
    host: '127.0.0.1',
    port: 0,
    timeouts,
    ...(tls === undefined ? {} : { tls: [{ hostNames: [], ...tls }] }),
  });
  await provider.start();
  cleanups.push(() => provider.stop());
  return { gate, logger, provider };
}

async function runFfmpeg(args: readonly string[]): Promise<void> {
  const child = spawn('ffmpeg', ['-hide_banner', '-loglevel', 'error', '-nostdin', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  cleanups.push(() => child.kill('SIGKILL'));
  let errors = '';
  child.stderr.on('data', (data: Buffer) => {
    errors += data.toString();
  });
  const [code] = (await once(child, 'close')) as [number | null];
  expect({ code, errors }).toEqual({ code: 0, errors: '' });
}

function selfSignedCertificate(): { key: string; cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'rtmps-test-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-days', '2'];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, ...subject], { stdio: 'ignore' });
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}

function expectH264AndAac(stream: FakeIngestStream): void {
  expect(stream.trackSets).toHaveLength(1);
  // ffmpeg counts 1024 bits to the kilobit.
  expect(stream.tracks).toMatchObject([
    { type: 'video', id: 0, codec: 'H264', format: 'length-prefixed', width: 320, height: 180, framerateConf: 30, bitrateConf: 390_625 },
    { type: 'audio', id: 1, codec: 'AAC', format: 'aac-raw', sampleRate: 48_000, channels: 2, bitrateConf: 93_750 },
  ]);
  const video = stream.packets.filter((packet) => packet.trackId === 0);
  const audio = stream.packets.filter((packet) => packet.trackId === 1);
  expect(video).toHaveLength(30 * SECONDS);
  expect(video.flatMap((packet, i) => (packet.keyframe ? [i] : []))).toEqual([0, 30, 60]);
  expect(audio.length).toBeGreaterThan((SECONDS * 48_000) / 1024 - 2);
  for (const packets of [video, audio]) {
    for (const [i, packet] of packets.entries()) {
      expect(packet.pts).toBeGreaterThanOrEqual(packet.dts);
      if (i > 0) expect(packet.dts).toBeGreaterThan(packets[i - 1]!.dts);
    }
  }
  expect(video.some((packet) => packet.pts > packet.dts)).toBe(true);
  const sizes = stream.packets.reduce((sum, packet) => sum + packet.data.length, 0);
  expect(stream.bytes).toBeGreaterThan(sizes);
}

test('ffmpeg publishes H.264 and AAC', async () => {
  const { gate, logger, provider } = await startProvider();
  const url = `rtmp://127.0.0.1:${provider.port}/app/stream?policy=a&signature=b`;
  await runFfmpeg([...VIDEO_SOURCE, ...AUDIO_SOURCE, ...H264, ...AAC, '-f', 'flv', url]);
  const stream = await gate.stream();
  await stream.until((it) => it.closed);
  expect(stream.target).toEqual({ host: '127.0.0.1', app: 'app' });
  expect(stream.request).toMatchObject({ streamName: 'stream', provider: 'rtmp', sourceType: 'Rtmp' });
  expect(stream.request.sourceUrl).toMatch(/^TCP:\/\/127\.0\.0\.1:\d+$/);
  expect(stream.closeReason?.code).toBe('peer-left');
  expectH264AndAac(stream);
  expect((await logger.line('RTMP stream unpublished')).fields).toMatchObject({ app: 'app', stream: 'stream' });
  expect((await logger.line('RTMP connection closed')).fields).toMatchObject({ code: 'peer-left' });
  expect(JSON.stringify(logger.lines)).not.toContain('signature=');
});

test('ffmpeg publishes over RTMPS', async () => {
  const { gate, provider } = await startProvider(selfSignedCertificate());
  await runFfmpeg([...VIDEO_SOURCE, ...AUDIO_SOURCE, ...H264, ...AAC, '-f', 'flv', `rtmps://127.0.0.1:${provider.port}/app/secure`]);
  const stream = await gate.stream();
  await stream.until((it) => it.closed);
  expect(stream.name).toBe('secure');
  expectH264AndAac(stream);
});

test.each([
  { name: 'video only', args: [...VIDEO_SOURCE, ...H264], codecs: ['H264'] },
  { name: 'audio only', args: [...AUDIO_SOURCE, ...AAC], codecs: ['AAC'] },
  {
    name: 'MP3 beside H.264',
    args: [...VIDEO_SOURCE, ...AUDIO_SOURCE, ...H264, '-c:a', 'libmp3lame', '-ar', '44100'],
    codecs: ['H264', 'MP3'],
  },
])('ffmpeg publishes $name', async ({ args, codecs }) => {
  const { gate, provider } = await startProvider();
  await runFfmpeg([...args, '-f', 'flv', `rtmp://127.0.0.1:${provider.port}/app/stream`]);
  const stream = await gate.stream();
  await stream.until((it) => it.closed);
  expect(stream.trackSets).toHaveLength(1);
  expect(stream.tracks.map((track) => (track.type === 'data' ? 'data' : track.codec))).toEqual(codecs);
  expect(stream.packets.length).toBeGreaterThan(SECONDS * 25);
});

test.each([
  { name: 'stalls', bytes: '160301' },
  { name: 'is garbage', bytes: 'ffffffffffffffff' },
  { name: 'is RTMP without TLS', bytes: `03${'00'.repeat(1536)}` },
])('a TLS handshake that $name is closed, and the log has the reason', async ({ bytes }) => {
  const { provider, logger } = await startProvider(selfSignedCertificate(), { handshake: 200 });
  const socket = net.connect({ port: provider.port, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  socket.resume();
  socket.write(Buffer.from(bytes, 'hex'));
  await once(socket, 'close');
  const line = await logger.line('RTMPS connection closed in the TLS handshake');
  expect(line.fields).toMatchObject({ code: 'peer-error', detail: expect.stringMatching(/\S/) as string });
  await expect.poll(() => provider.connections).toBe(0);
});
