/** The media ports with peers that are sockets: over IPv6, and over TCP with all that goes wrong there. */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { until } from '../../../../test/harness/poll.ts';
import { systemClock } from '../../../util/clock.ts';
import { frameDatagram, TcpFramer } from '../../../wire/ice/tcp-framer.ts';
import { parseStun, StunAttribute, StunType, serializeStun } from '../../../wire/stun/stun-message.ts';
import type { PeerSession } from './peer-session.ts';
import { PeerTransport } from './peer-transport.ts';

const WAIT = { deadlineMs: 30_000, everyMs: 5 };

let logger: RecordingLogger;
let transport: PeerTransport;
let port: number;
let ends: string[];
let streams: Socket[];

beforeEach(async () => {
  logger = new RecordingLogger();
  ends = [];
  streams = [];
  // The number of a free UDP port may be taken for TCP, or on the other family.
  for (let attempt = 0; attempt < 10; attempt += 1) {
    transport = await PeerTransport.open({
      ports: [{ host: '127.0.0.1', port: 0, addresses: ['127.0.0.1'] }],
      tcp: true,
      threads: 1,
      clock: systemClock,
      logger,
    });
    port = Number(transport.candidates()[0]?.split(' ')[5]);
    if (transport.candidates().length === 2) break;
    await transport.close();
  }
});

afterEach(async () => {
  vi.useRealTimers();
  for (const stream of streams) stream.destroy();
  await transport.close();
});

function open(): PeerSession {
  const listener = { connected: () => undefined, rtcp: () => undefined, closed: (reason: string) => ends.push(reason) };
  return transport.openSession(listener, { use: 'play', client: '127.0.0.1', timeout: 30_000 });
}

function check({ credentials: { ufrag, password } }: PeerSession): Buffer {
  const attributes = [[StunAttribute.USERNAME, Buffer.from(`${ufrag}:x`)]] as const;
  return serializeStun({ type: StunType.BINDING_REQUEST, transaction: randomBytes(12), attributes, password });
}

class Stream {
  readonly socket: Socket;
  readonly frames: Buffer[] = [];
  closed = false;

  constructor() {
    const framer = new TcpFramer();
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('data', (chunk: Buffer) => this.frames.push(...(framer.push(chunk) ?? [])));
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.closed = true;
    });
    streams.push(this.socket);
  }

  /** Checks and waits for the answer. */
  async reach(session: PeerSession): Promise<void> {
    this.socket.write(frameDatagram(check(session)));
    await until('the answer', () => this.frames.length > 0, WAIT);
    expect(parseStun(this.frames[0] ?? Buffer.alloc(0)).type).toBe(StunType.BINDING_SUCCESS);
  }
}

test('ports with the same number are announced together, ports with other numbers alternate', async () => {
  const host = { host: '127.0.0.1', addresses: ['127.0.0.1'] };
  const six = { host: '::1', port, addresses: ['::1'] };
  await transport.close();
  transport = await PeerTransport.open({
    ports: [{ ...host, port }, { ...host, port: 0 }, six],
    tcp: false,
    threads: 1,
    clock: systemClock,
    logger,
  });
  const told = Array.from({ length: 3 }, () => transport.candidates().map((candidate) => candidate.split(' ').slice(4, 6).join(' ')));
  expect(told[0]).toEqual([`127.0.0.1 ${port}`, `::1 ${port}`]);
  expect(told[1]).toEqual([expect.stringMatching(/^127\.0\.0\.1 \d+$/)]);
  expect(told[2]).toEqual(told[0]);
});

test('a session over TCP ends when its connection is reset, while other sessions stay', async () => {
  const [session, other] = [open(), open()];
  const [stream, second] = [new Stream(), new Stream()];
  await stream.reach(session);
  await second.reach(other);
  expect(session.place).toMatch(/^tcp 127\.0\.0\.1:\d+$/);
  stream.socket.resetAndDestroy();
  await until('the end of the session', () => ends.length === 1, WAIT);
  expect([ends, session.closed, other.closed]).toEqual([['the TCP connection ended'], true, false]);
});

test('connections that are reset or break the framing leave other sessions connected', async () => {
  for (let n = 0; n < 20; n += 1) {
    const { socket } = new Stream();
    socket.once('connect', () => socket.resetAndDestroy());
  }
  const broken = new Stream();
  broken.socket.write(Buffer.of(0xff, 0xff, 0));
  await until('the broken connection is closed', () => broken.closed, WAIT);
  expect(logger.matching('a TCP connection for media was closed: it does not speak ICE')).toHaveLength(1);
  const session = open();
  await new Stream().reach(session);
  expect(session.closed).toBe(false);
});

test('connections without a connectivity check are closed after a while, connections of a session are kept', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const idle = new Stream();
  idle.socket.write(frameDatagram(Buffer.from('hello')));
  await until('the connection is watched', () => vi.getTimerCount() === 1, WAIT);
  const [used, over] = [new Stream(), new Stream()];
  const [session, ended] = [open(), open()];
  await used.reach(session);
  await over.reach(ended);
  // Only the idle connection is still waited for.
  expect(vi.getTimerCount()).toBe(1);
  ended.close();
  await until('the connection is closed with its session', () => over.closed, WAIT);
  vi.advanceTimersByTime(9999);
  expect(idle.closed).toBe(false);
  vi.advanceTimersByTime(1);
  vi.useRealTimers();
  await until('the idle connection is closed', () => idle.closed, WAIT);
  expect([used.closed, session.closed]).toEqual([false, false]);
});

test('a connection that does not read is closed, and holds a bounded number of bytes', async () => {
  const session = open();
  const stream = new Stream();
  await stream.reach(session);
  stream.socket.pause();
  const frames = Buffer.concat(Array.from({ length: 50 }, () => frameDatagram(Buffer.alloc(1200, 0x80))));
  for (let n = 0; n < 400; n += 1) {
    session.sendTcp(frames);
    // The kernel takes some of the data meanwhile.
    if (n % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(session.tcpDropped).toBeGreaterThan(50);
  expect(session.closed).toBe(false);
  // Answers to checks are not media: who asks for more and more of them without reading loses the connection.
  const many = Buffer.concat(Array.from({ length: 500 }, () => frameDatagram(check(session))));
  const ask = (): void => {
    if (!stream.closed) stream.socket.write(many, () => setImmediate(ask));
  };
  ask();
  await until('the connection is lost', () => ends.length === 1, { deadlineMs: 30_000, everyMs: 5 });
  expect(ends).toEqual(['the TCP connection ended']);
});
