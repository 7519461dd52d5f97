/** Peers that break the protocol, stall or go away do not harm the server or its other streams. */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiPath, type StreamInformation } from './support/api-client.ts';
import { until } from './support/poll.ts';
import { type FfmpegPublisher, publish } from './support/publisher.ts';
import { startServer, type TestServer } from './support/server.ts';

const CONNECTIONS = 500;
const HANDSHAKE_VERSION = 3;
const HANDSHAKE_LENGTH = 1536;
const FD_SLACK = 8;
const RSS_SLACK_MB = 100;

let server: TestServer;
let encoder: FfmpegPublisher;

beforeAll(async () => {
  server = await startServer({ segmentDuration: 1 });
  encoder = publish({ url: server.rtmp('steady'), width: 320, height: 180, videoKbps: 300 });
  await encoder.sent(90);
});

afterAll(async () => {
  await encoder?.stop();
  await server?.close();
});

function openFiles(): number {
  return readdirSync(`/proc/${server.pid}/fd`).length;
}

function residentMb(): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}

/** The ways to misbehave; each writes once and then says nothing more. */
const WAYS: readonly ((socket: Socket) => void)[] = [
  (socket) => socket.write(randomBytes(4096)),
  () => undefined,
  (socket) => socket.write(Buffer.concat([Buffer.of(HANDSHAKE_VERSION), randomBytes(HANDSHAKE_LENGTH / 2)])),
  // A whole handshake, then bytes that are no chunk.
  (socket) => socket.write(Buffer.concat([Buffer.of(HANDSHAKE_VERSION), randomBytes(2 * HANDSHAKE_LENGTH), randomBytes(5000)])),
  // A whole handshake, then a chunk header that announces 16 MB and stalls.
  (socket) =>
    socket.write(
      Buffer.concat([
        Buffer.of(HANDSHAKE_VERSION),
        randomBytes(2 * HANDSHAKE_LENGTH),
        Buffer.of(0x03, 0, 0, 0, 0xff, 0xff, 0xff, 0x14, 0, 0, 0, 0),
        randomBytes(64),
      ]),
    ),
  (socket) => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
];

/** Opens one connection; `closed` settles when the server (or the kernel) ended it. */
function misbehave(index: number): { socket: Socket; closed: Promise<void> } {
  const socket = connect(server.ports.rtmp, '127.0.0.1', () => WAYS[index % WAYS.length]?.(socket));
  socket.on('error', () => undefined);
  socket.resume();
  return { socket, closed: new Promise((resolve) => socket.once('close', () => resolve())) };
}

async function expectServerIsWell(): Promise<void> {
  await encoder.sent(30);
  const { input } = await server.api.get<StreamInformation>(apiPath.stream('steady'));
  expect(input.tracks.find((track) => track.type === 'Video')?.video?.framerateLatest).toBeGreaterThan(20);
}

test(`${CONNECTIONS} abusive connections are all ended by the server, which gives back files and memory`, async () => {
  const filesBefore = openFiles();
  const residentBefore = residentMb();
  const peers = Array.from({ length: CONNECTIONS }, (_unused, index) => misbehave(index));
  let ended = 0;
  for (const { closed } of peers) {
    void closed.then(() => {
      ended += 1;
    });
  }
  try {
    await expectServerIsWell();
    await until('the server to end every abusive connection', () => ended === CONNECTIONS || null, { deadlineMs: 30_000 });
    await until(`open files to fall back to ${filesBefore}`, () => openFiles() <= filesBefore + FD_SLACK);
    await until(`resident memory to stay near ${residentBefore} MB`, () => residentMb() < residentBefore + RSS_SLACK_MB);
    await expectServerIsWell();
  } finally {
    for (const { socket } of peers) socket.destroy();
  }
});

test('connections that are cut in the middle of everything leave nothing behind', async () => {
  const filesBefore = openFiles();
  for (let round = 0; round < 4; round += 1) {
    const peers = Array.from({ length: 50 }, (_unused, index) => misbehave(index));
    await until('connections to be made', () => peers.every(({ socket }) => !socket.connecting));
    for (const { socket } of peers) socket.resetAndDestroy();
    await Promise.all(peers.map(({ closed }) => closed));
  }
  await until(`open files to fall back to ${filesBefore}`, () => openFiles() <= filesBefore + FD_SLACK);
  await expectServerIsWell();
});
