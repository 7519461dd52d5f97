import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout } from 'node:timers/promises';
import tls from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { RtmpPublisher } from '../../../test/fakes/rtmp-publisher.ts';
import { selfSigned } from '../../../test/fakes/self-signed.ts';
import { systemClock } from '../../util/clock.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { serializeAmf0 } from '../../wire/rtmp/amf0.ts';
import { ChunkWriter } from '../../wire/rtmp/chunk-writer.ts';
import { userControlMessage } from '../../wire/rtmp/control.ts';
import { ClientHandshake } from '../../wire/rtmp/handshake.ts';
import { MessageType, UserControlEvent } from '../../wire/rtmp/message.ts';
import type { RtmpProviderOptions, RtmpTimeouts } from './rtmp-options.ts';
import { RtmpProvider } from './rtmp-provider.ts';

/** No deadline passes by itself: a test shortens its own, so that a slow machine cannot make another deadline come first. */
const PATIENT = { handshake: 60_000, unpublishedSilence: 60_000, publish: 60_000, firstTrack: 60_000, trackWait: 100, linger: 100 };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start({ timeouts, ...options }: Partial<RtmpProviderOptions> = {}) {
  const gate = new FakeIngestGate();
  const logger = new RecordingLogger();
  const provider = new RtmpProvider({
    gate,
    logger,
    clock: systemClock,
    host: '127.0.0.1',
    port: 0,
    timeouts: { ...PATIENT, ...timeouts },
    ...options,
  });
  await provider.start();
  cleanups.push(() => provider.stop());
  return { gate, logger, provider, port: provider.port };
}

function rawSocket(port: number): { socket: net.Socket; closed: Promise<void> } {
  const socket = net.connect({ port, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  socket.resume();
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  return { socket, closed };
}

/** A finished simple handshake and the following bytes, in one write. */
function afterHandshake(bytes: Buffer): Buffer {
  return Buffer.concat([new ClientHandshake({ variant: 'simple' }).hello, Buffer.alloc(1536), bytes]);
}

function command(...values: Parameters<typeof serializeAmf0>[0]): Buffer {
  return new ChunkWriter().write({
    chunkStreamId: 3,
    typeId: MessageType.COMMAND_AMF0,
    streamId: 0,
    timestamp: 0,
    payload: serializeAmf0(values),
  });
}

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(/\s/g, ''), 'hex');
}

/** The bytes that a hostile peer sends at once; afterwards it keeps silent. */
const ABUSES: { name: string; bytes: () => Buffer; timeouts?: Partial<RtmpTimeouts>; code: string; detail: RegExp }[] = [
  { name: 'says nothing', bytes: () => Buffer.alloc(0), timeouts: { handshake: 400 }, code: 'timeout', detail: /handshake/ },
  {
    name: 'stops inside its hello',
    bytes: () => Buffer.concat([Buffer.from([3]), randomBytes(700)]),
    timeouts: { handshake: 400 },
    code: 'timeout',
    detail: /handshake/,
  },
  {
    name: 'stops after its hello',
    bytes: () => new ClientHandshake({ variant: 'digest' }).hello,
    timeouts: { handshake: 400 },
    code: 'timeout',
    detail: /handshake/,
  },
  { name: 'speaks HTTP', bytes: () => Buffer.from('GET / HTTP/1.1\r\n\r\n'), code: 'peer-error', detail: /speaks HTTP, not RTMP/ },
  {
    name: 'speaks TLS',
    bytes: () => hex('1603010200010001fc0303'),
    code: 'peer-error',
    detail: /TLS was spoken to port \d+, which speaks plain RTMP/,
  },
  { name: 'speaks another protocol', bytes: () => hex('0603010200010001fc0303'), code: 'peer-error', detail: /RTMP_VERSION/ },
  {
    name: 'is silent after the handshake',
    bytes: () => afterHandshake(Buffer.alloc(0)),
    timeouts: { unpublishedSilence: 300 },
    code: 'timeout',
    detail: /silent/,
  },
  {
    name: 'announces a command of 16 MiB',
    bytes: () => afterHandshake(hex('03 000000 ffffff 14 00000000')),
    code: 'peer-error',
    detail: /RTMP_MESSAGE_SIZE/,
  },
  {
    name: 'announces media of 16 MiB unpublished',
    bytes: () => afterHandshake(hex('06 000000 ffffff 09 01000000')),
    code: 'peer-error',
    detail: /RTMP_MESSAGE_SIZE/,
  },
  {
    name: 'sets a chunk size of 0',
    bytes: () => afterHandshake(hex('02 000000 000004 01 00000000 00000000')),
    code: 'peer-error',
    detail: /RTMP_CHUNK_SIZE/,
  },
  {
    name: 'sets a chunk size of 4 GiB',
    bytes: () => afterHandshake(hex('02 000000 000004 01 00000000 ffffffff')),
    code: 'peer-error',
    detail: /RTMP_CHUNK_SIZE/,
  },
  {
    name: 'cuts a control message short',
    bytes: () => afterHandshake(hex('02 000000 000001 01 00000000 00')),
    code: 'peer-error',
    detail: /RTMP_CONTROL_TRUNCATED/,
  },
  {
    name: 'sends a string of 4 GiB',
    bytes: () => afterHandshake(hex('03 000000 000006 14 00000000 0c ffffffff 00')),
    code: 'peer-error',
    detail: /AMF_TRUNCATED/,
  },
  { name: 'starts with a continuation', bytes: () => afterHandshake(hex('c4 00')), code: 'peer-error', detail: /RTMP_CHUNK_HEADER/ },
  {
    name: 'opens a thousand chunk streams',
    bytes: () =>
      afterHandshake(
        Buffer.concat(
          Array.from({ length: 1000 }, (_, i) => hex(`00 ${(i & 0xff).toString(16).padStart(2, '0')} 000000 000001 08 00000000 00`)),
        ),
      ),
    code: 'peer-error',
    detail: /RTMP_CHUNK_STREAMS/,
  },
  {
    name: 'publishes before connect',
    bytes: () => afterHandshake(command('publish', 1, null, 'x')),
    code: 'peer-error',
    detail: /RTMP_PUBLISH/,
  },
  {
    name: 'connects without an application',
    bytes: () => afterHandshake(command('connect', 1, null)),
    code: 'denied',
    detail: /connect without an application/,
  },
  { name: 'sends a command without a name', bytes: () => afterHandshake(command(1, 2)), code: 'peer-error', detail: /RTMP_COMMAND/ },
];

describe('an abusive peer', () => {
  test.each(ABUSES)('that $name is disconnected, and the log has the reason', async ({ bytes, timeouts = {}, code, detail }) => {
    const { port, logger, provider } = await start({ timeouts });
    const { socket, closed } = rawSocket(port);
    socket.write(bytes());
    await closed;
    const line = await logger.line('RTMP connection closed');
    expect(line.fields).toMatchObject({
      code,
      detail: expect.stringMatching(detail) as string,
      peer: expect.stringMatching(/^127\.0\.0\.1:/) as string,
    });
    await expect.poll(() => provider.connections).toBe(0);
    expect(logger.lines.filter((it) => it.level === 'error')).toEqual([]);
  });

  test('that trickles its hello byte by byte is closed at the deadline', async () => {
    const { port, logger } = await start({ timeouts: { handshake: 400 } });
    const { socket, closed } = rawSocket(port);
    socket.write(Buffer.from([3]));
    const trickle = setInterval(() => socket.write(Buffer.from([0])), 50);
    await closed;
    clearInterval(trickle);
    expect((await logger.line('RTMP connection closed')).fields).toMatchObject({ detail: 'handshake not finished after 400 ms' });
  });

  test('that is slow in the TLS handshake has only the remaining time for the RTMP handshake', async () => {
    const clock = new ManualClock();
    const certificate = { hostNames: ['*'], ...selfSigned('localhost') };
    const { port, logger, provider } = await start({ clock, tls: [certificate], timeouts: { handshake: 10_000 } });
    const { socket, closed } = rawSocket(port);
    await expect.poll(() => provider.connections).toBe(1);
    clock.advance(6000);
    const secure = tls.connect({ socket, rejectUnauthorized: false });
    secure.on('error', () => undefined);
    await once(secure, 'secureConnect');
    await expect.poll(() => logger.lines.some(({ message }) => message === 'RTMP connection opened')).toBe(true);
    clock.advance(5000);
    await closed;
    expect((await logger.line('RTMP connection closed')).fields).toMatchObject({ detail: 'handshake not finished after 10000 ms' });
  });

  test('that keeps talking without publishing is closed at the deadline', async () => {
    const { port, logger } = await start({ timeouts: { publish: 1500 } });
    const publisher = await RtmpPublisher.open(port);
    const talk = setInterval(() => publisher.call('_checkbw', 0, null), 50);
    await publisher.closed;
    clearInterval(talk);
    expect((await logger.line('RTMP connection closed')).fields).toMatchObject({ detail: 'no publish within 1500 ms' });
  });

  test('that publishes repeatedly without media is disconnected at the deadline', async () => {
    const { port, logger } = await start({ timeouts: { publish: 1500 } });
    const publisher = await RtmpPublisher.publish(port);
    const again = setInterval(() => {
      publisher.call('closeStream', 0, null);
      publisher.call('publish', 3, null, 'stream', 'live');
      publisher.call('closeStream', 0, null);
    }, 50);
    await publisher.closed;
    clearInterval(again);
    expect((await logger.line('RTMP connection closed')).fields).toMatchObject({ detail: 'no publish within 1500 ms' });
  });

  test('that publishes garbage only is closed at the deadline, its name is free again', async () => {
    const { port, logger, gate } = await start({ timeouts: { firstTrack: 1500 } });
    const publisher = await RtmpPublisher.publish(port);
    publisher.video(0, 'ffffffff');
    const talk = setInterval(() => publisher.video(0, 'ffffffff'), 50);
    await publisher.closed;
    clearInterval(talk);
    expect((await gate.stream()).closeReason?.code).toBe('timeout');
    const { fields } = await logger.line('RTMP connection closed');
    expect(fields).toMatchObject({ detail: 'no usable track within 1500 ms', firstFault: expect.stringContaining('FLV') as string });
  });

  test('that announces only unreadable tracks is disconnected at the deadline with the first fault', async () => {
    const { port, logger, gate } = await start({ timeouts: { trackWait: 50, firstTrack: 1500 } });
    gate.fault = new ProtocolError('AVCC', 'made up');
    const publisher = await RtmpPublisher.publish(port);
    publisher.video(0, '17000000000142001f');
    await publisher.closed;
    const { fields } = await logger.line('RTMP connection closed');
    expect(fields).toMatchObject({ detail: 'no usable track within 1500 ms', firstFault: 'AVCC: made up' });
  });

  test('that causes a fault at the start of its stream loses only its own connection', async () => {
    const { port, logger, gate } = await start({ timeouts: { trackWait: 50 } });
    gate.fault = new Error('boom');
    const publisher = await RtmpPublisher.publish(port);
    publisher.video(0, '17000000000142001f');
    await publisher.closed;
    expect((await logger.line('RTMP connection closed')).fields).toMatchObject({ code: 'peer-error', detail: 'internal error' });
    expect(logger.matching('RTMP connection failed inside the server')).toHaveLength(1);
  });

  test('that falls silent while publishing is disconnected when PacketSilenceTimeoutMs is set', async () => {
    const { port, gate } = await start({ timeouts: { packetSilence: 1500 } });
    const publisher = await RtmpPublisher.publish(port);
    publisher.metadata({ audiocodecid: 10 });
    publisher.audio(0, 'af001190');
    publisher.audio(0, 'af0121aa');
    await publisher.closed;
    expect((await gate.stream()).closeReason).toEqual({ code: 'timeout', detail: 'no media for 1500 ms' });
  });

  test('that leaves too many messages a second unfinished is disconnected', async () => {
    const { port, logger, provider } = await start();
    const publisher = await RtmpPublisher.publish(port);
    publisher.setChunkSize(1);
    const begun = hex('06 000000 ffffff 09 01000000 17');
    const begunAt = performance.now();
    publisher.socket.write(Buffer.concat(Array.from({ length: 100 }, () => begun)));
    await publisher.closed;
    const seconds = (performance.now() - begunAt) / 1000;
    const { fields } = await logger.line('RTMP connection closed');
    expect(fields).toMatchObject({ code: 'peer-error', detail: expect.stringMatching(/^RTMP_DISCARDED: more than 16/) as string });
    expect(fields['discardedMessages']).toBeLessThanOrEqual(Math.ceil(16 * (1 + seconds)) + 1);
    await expect.poll(() => provider.connections).toBe(0);
  });

  test('that sends aggregates of unreadable tags is disconnected after some hundred tags', async () => {
    const { port, logger } = await start();
    const publisher = await RtmpPublisher.publish(port);
    const tag = hex('09 000001 000000 00 000000 17 0000000c');
    const payload = Buffer.concat(Array.from({ length: 1000 }, () => tag));
    publisher.send({ chunkStreamId: 6, typeId: MessageType.AGGREGATE, streamId: 1, timestamp: 0, payload });
    await publisher.closed;
    const { fields } = await logger.line('RTMP connection closed');
    expect(fields).toMatchObject({
      code: 'peer-error',
      detail: expect.stringMatching(/^RTMP_MALFORMED: more than 100 .* the last one: FLV/) as string,
    });
    expect(fields['malformed']).toBeLessThan(700);
  });

  test('that never reads its answers is closed when they pile up', async () => {
    const { port, logger } = await start({ limits: { writeBacklogBytes: 100_000 } });
    const publisher = await RtmpPublisher.publish(port);
    publisher.socket.pause();
    const writer = new ChunkWriter();
    const ping = writer.write(userControlMessage(UserControlEvent.PING_REQUEST, 1));
    const flood = Buffer.concat(Array.from({ length: 20_000 }, () => ping));
    const pump = () => {
      while (!publisher.socket.destroyed && publisher.socket.write(flood));
    };
    publisher.socket.on('drain', pump);
    pump();
    expect((await logger.line('RTMP connection closed')).fields).toMatchObject({
      detail: expect.stringMatching(/does not read/) as string,
    });
    publisher.close();
  });

  test('over the limit of connections is refused and counted', async () => {
    const { port, provider } = await start({ limits: { connections: 2 } });
    const publishers = await Promise.all([RtmpPublisher.publish(port, { key: 'a' }), RtmpPublisher.publish(port, { key: 'b' })]);
    await rawSocket(port).closed;
    expect(provider.dropped).toBe(1);
    for (const publisher of publishers) publisher.close();
  });
});

test('a publisher of an unsupported codec is logged once with the name of the codec', async () => {
  const { port, logger, gate } = await start();
  const publisher = await RtmpPublisher.publish(port);
  publisher.metadata({ audiocodecid: 2 });
  for (let at = 0; at < 5; at += 1) {
    publisher.video(at * 40, '22aabbcc');
    publisher.audio(at * 26, '2ffffb50c0');
  }
  const stream = await gate.stream();
  await stream.until((it) => it.packets.length === 5);
  const warnings = logger.lines.filter(({ level }) => level === 'warn');
  expect(warnings.map(({ message }) => message)).toEqual([
    'the video is left out: Sorenson H.263 (FLV1) is not supported; RTMP can bring H.264, H.265, VP8, VP9 and AV1',
  ]);
  expect(warnings[0]?.fields).toMatchObject({ stream: 'stream' });
  publisher.close();
  await publisher.closed;
});

/** Resources that keep a process alive, by kind. */
function openResources(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** Kinds of which there are more than `before`, once there are none or ten seconds have passed. No timer of its own runs while it counts. */
async function resourcesBeyond(before: Record<string, number>): Promise<string[]> {
  const deadline = performance.now() + 10_000;
  while (true) {
    const now = openResources();
    const beyond = ['TCPSocketWrap', 'TCPServerWrap', 'Timeout'].filter((kind) => (now[kind] ?? 0) > (before[kind] ?? 0));
    if (beyond.length === 0 || performance.now() > deadline) return beyond;
    await setTimeout(20);
  }
}

test('500 abusive connections leave no resources behind, and do not disturb a publisher', async () => {
  const before = openResources();
  const { port, logger, provider, gate } = await start({ timeouts: { handshake: 2000, unpublishedSilence: 2000, publish: 5000 } });
  const good = await RtmpPublisher.publish(port, { key: 'good' });
  good.metadata({ audiocodecid: 10 });
  good.audio(0, 'af001190');
  const sockets = Array.from({ length: 500 }, (_, i) => {
    const { socket, closed } = rawSocket(port);
    if (i % 5 === 0) socket.write(afterHandshake(randomBytes(5000)));
    else if (i % 5 === 1) socket.write(randomBytes(1 + i), () => socket.destroy());
    else socket.write(ABUSES[i % ABUSES.length]!.bytes());
    return closed;
  });
  await Promise.all(sockets);
  for (let i = 0; i < 10; i += 1) good.audio(i * 20, 'af0121aa');
  const stream = await gate.stream();
  await stream.until((it) => it.packets.length === 10);
  expect(provider.accepted).toBe(501);
  await expect.poll(() => provider.connections).toBe(1);
  expect(logger.matching('RTMP connection closed')).toHaveLength(500);
  expect(logger.matching('RTMP connection closed').every((line) => typeof line.fields['detail'] === 'string')).toBe(true);
  expect(logger.lines.filter((line) => line.level === 'error')).toEqual([]);
  good.close();
  await good.closed;
  await provider.stop();
  expect(await resourcesBeyond(before)).toEqual([]);
});
