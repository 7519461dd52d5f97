/** Peers that violate the protocol, stall or disappear do not harm the server or its other streams. */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ChunkWriter } from '../../src/wire/rtmp/chunk-writer.ts';
import { MessageType } from '../../src/wire/rtmp/message.ts';
import { RtmpPublisher } from '../fakes/rtmp-publisher.ts';
import { ASC, AVCC } from '../fixtures/bitstreams.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const CONNECTIONS = 500;
const HANDSHAKE_VERSION = 3;
const HANDSHAKE_LENGTH = 1536;
const FD_SLACK = 8;
const RSS_SLACK_MB = 100;

let server: TestServer;
let encoder: FfmpegPublisher;

beforeAll(async () => {
  // All attackers have one address, and the limit per address must not stop them.
  const head = '<Limits><PerAddress><Publishers>0</Publishers></PerAddress></Limits>';
  server = await startServer({ segmentDuration: 1, head });
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

/** The kinds of misbehaviour; each writes once and then stays silent. */
const WAYS: readonly ((socket: Socket) => void)[] = [
  (socket) => socket.write(randomBytes(4096)),
  () => undefined,
  (socket) => socket.write(Buffer.concat([Buffer.of(HANDSHAKE_VERSION), randomBytes(HANDSHAKE_LENGTH / 2)])),
  // A complete handshake, then bytes that are not a chunk.
  (socket) => socket.write(Buffer.concat([Buffer.of(HANDSHAKE_VERSION), randomBytes(2 * HANDSHAKE_LENGTH), randomBytes(5000)])),
  // A complete handshake, then a chunk header that announces 16 MB, and silence.
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

test(`${CONNECTIONS} abusive connections are all closed by the server, which frees files and memory`, async () => {
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

test('connections cut at arbitrary points leave no open files behind', async () => {
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

const MIB = 1024 * 1024;
/** The kernel counts CPU time in ticks of 10 ms. */
const TICK_S = 0.01;

/** CPU time of the server so far, seconds. */
function cpuSeconds(): number {
  const fields = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_S;
}

/** Writes `pieces` as fast as they are taken, up to the last or until the server closes the connection; returns the number of bytes. */
async function flood(publisher: RtmpPublisher, pieces: Iterable<Uint8Array>): Promise<number> {
  const { socket } = publisher;
  let bytes = 0;
  for (const piece of pieces) {
    if (socket.destroyed) break;
    bytes += piece.length;
    if (socket.write(piece)) continue;
    await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), publisher.closed]);
  }
  await publisher.closed;
  return bytes;
}

/** A publisher that has announced its tracks. */
async function publishing(key: string): Promise<RtmpPublisher> {
  const { rtmp } = server.ports;
  const publisher = await RtmpPublisher.publish(rtmp, { tcUrl: `rtmp://127.0.0.1:${rtmp}/app`, key });
  publisher.video(0, `1700000000${Buffer.from(AVCC.high720).toString('hex')}`);
  publisher.audio(0, `af00${Buffer.from(ASC.stereo48).toString('hex')}`);
  return publisher;
}

/** A frame as an FLV tag: one slice of `size` bytes after its length. */
function picture(size: number): Buffer {
  const tag = Buffer.alloc(9 + size, 0x55);
  tag.set([0x17, 1, 0, 0, 0]);
  tag.writeUInt32BE(size, 5);
  tag[9] = 0x65;
  return tag;
}

function* repeated(piece: Uint8Array, times: number): Generator<Uint8Array> {
  for (let time = 0; time < times; time += 1) yield piece;
}

async function expectLogged(text: RegExp): Promise<void> {
  await until(`the log to say ${text.source}`, () => text.test(server.log) || null);
}

test('100,000 headers that announce 16 MB each take little time and memory, and end the connection', async () => {
  const publisher = await publishing('headers');
  publisher.setChunkSize(1);
  const [cpu, resident] = [cpuSeconds(), residentMb()];
  const header = Buffer.from('06000000ffffff090100000017', 'hex');
  await flood(publisher, repeated(Buffer.concat(Array.from({ length: 1000 }, () => header)), 100));
  await expectLogged(/RTMP_DISCARDED: more than 16 messages a second were begun and not finished/);
  expect(cpuSeconds() - cpu).toBeLessThan(4);
  expect(residentMb() - resident).toBeLessThan(RSS_SLACK_MB);
  await expectServerIsWell();
});

test('an aggregate of a million unreadable tags closes the connection at once', async () => {
  const publisher = await publishing('aggregate');
  const cpu = cpuSeconds();
  const tag = Buffer.from('0900000100000000000000170000000c', 'hex');
  const payload = Buffer.concat(Array.from({ length: 1_000_000 }, () => tag));
  const wire = new ChunkWriter().write({ chunkStreamId: 6, typeId: MessageType.AGGREGATE, streamId: 1, timestamp: 0, payload });
  await flood(publisher, [wire]);
  await expectLogged(/RTMP_MALFORMED: more than 100 messages a second cannot be read|RTMP_AGGREGATE: more than 1024 messages in one/);
  expect(cpuSeconds() - cpu).toBeLessThan(4);
  await expectServerIsWell();
});

test('an encoder with a frozen clock is disconnected, and its memory is freed', async () => {
  const writer = new ChunkWriter();
  writer.setChunkSize(MIB);
  const frame = writer.write({ chunkStreamId: 6, typeId: MessageType.VIDEO, streamId: 1, timestamp: 0, payload: picture(60_000) });
  const resident = residentMb();
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, residentMb() - resident);
  }, 20);
  try {
    for (const key of ['stuck', 'stuck-again', 'stuck-once-more']) {
      const publisher = await publishing(key);
      publisher.setChunkSize(MIB);
      const sent = await flood(publisher, repeated(frame, 10_000));
      // Includes data in transit.
      expect(sent / MIB).toBeLessThan(150);
      await expectLogged(new RegExp(`"stream":"${key}".*its clock stands still`));
      await until('the stream to be gone', async () => (await server.api.call('GET', apiPath.stream(key))).status === 404 || null);
    }
  } finally {
    clearInterval(watch);
  }
  expect(most).toBeLessThan(450);
  await expectServerIsWell();
});

test('an encoder that changes its parameters endlessly is disconnected with a short log', async () => {
  const publisher = await publishing('changing');
  const logged = server.log.length;
  const key = picture(20).toString('hex');
  for (let at = 0; at < 3000 && !publisher.socket.destroyed; at += 1) {
    const config = at % 2 === 0 ? AVCC.main1080 : AVCC.high720;
    publisher.video(at * 40, `1700000000${Buffer.from(config).toString('hex')}`);
    publisher.video(at * 40, key);
    publisher.audio(at * 40, 'af0121aa');
  }
  await publisher.closed;
  await expectLogged(/its parameters change more than 1 time a second/);
  expect(server.log.length - logged).toBeLessThan(20_000);
  await expectServerIsWell();
});
