/** The relay with clients that are sockets: from the first byte to a session that talks through it. */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { channelNumber, peerAddress, type TurnAttribute, turnRequest, UDP_TRANSPORT } from '../../../../test/fakes/turn-client.ts';
import { until } from '../../../../test/harness/poll.ts';
import { systemClock } from '../../../util/clock.ts';
import {
  parseStun,
  readXorMappedAddress,
  StunAttribute,
  type StunMessage,
  StunType,
  serializeStun,
} from '../../../wire/stun/stun-message.ts';
import { frameChannelData, TurnFramer } from '../../../wire/turn/turn-framer.ts';
import { PeerTransport } from './peer-transport.ts';
import { RELAY_ACCOUNT, TurnRelay } from './turn-relay.ts';

const WAIT = { deadlineMs: 30_000, everyMs: 5 };
const CHANNEL = 0x4001;

let logger: RecordingLogger;
let transport: PeerTransport;
let relay: TurnRelay;
let clients: Client[];

class Client {
  readonly socket: Socket;
  readonly messages: StunMessage[] = [];
  readonly datagrams: Buffer[] = [];
  closed = false;
  #nonce = Buffer.alloc(0);

  constructor() {
    const framer = new TurnFramer();
    this.socket = connect(relay.ports[0] ?? 0, '127.0.0.1');
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.closed = true;
    });
    this.socket.on('data', (chunk: Buffer) => {
      for (const frame of framer.push(chunk)) {
        if (frame.kind === 'message') this.messages.push(parseStun(frame.bytes));
        else this.datagrams.push(frame.datagram);
      }
    });
    clients.push(this);
  }

  async ask(type: number, make: (transaction: Buffer) => readonly TurnAttribute[]): Promise<StunMessage> {
    const transaction = randomBytes(12);
    const shown = this.#nonce.length > 0 ? { account: RELAY_ACCOUNT, nonce: this.#nonce } : null;
    this.socket.write(turnRequest(type, transaction, make(transaction), shown));
    return await until('the answer', () => this.messages.find((message) => message.transaction.equals(transaction)) ?? null, WAIT);
  }

  async allocate(...attributes: TurnAttribute[]): Promise<StunMessage> {
    const challenge = await this.ask(StunType.ALLOCATE_REQUEST, () => []);
    this.#nonce = Buffer.from(challenge.attributes.get(StunAttribute.NONCE) ?? []);
    return await this.ask(StunType.ALLOCATE_REQUEST, () => [UDP_TRANSPORT, ...attributes]);
  }

  async bind(host: string, channel = CHANNEL): Promise<StunMessage> {
    return await this.ask(StunType.CHANNEL_BIND_REQUEST, (transaction) => [
      channelNumber(channel),
      peerAddress({ host, port: 10_000 }, transaction),
    ]);
  }
}

beforeEach(async () => {
  logger = new RecordingLogger();
  clients = [];
  transport = await PeerTransport.open({ ports: [], tcp: false, threads: 1, clock: systemClock, logger });
  relay = await TurnRelay.open({ listen: [{ host: '127.0.0.1', port: 0 }], transport, clock: systemClock, logger });
});

afterEach(async () => {
  vi.useRealTimers();
  for (const { socket } of clients) socket.destroy();
  relay.close();
  relay.close();
  await transport.close();
});

test.each([
  ['IPv4', 1, '198.51.100.1', '1.1.1.1'],
  ['IPv6', 2, '2001:db8::1', '1:0:0:0:0:0:0:1'],
] as const)('a session is reached through an allocation of %s, and ends with the connection', async (_name, family, ours, relayed) => {
  const ends: string[] = [];
  const listener = { connected: () => undefined, rtcp: () => undefined, closed: (reason: string) => ends.push(reason) };
  const session = transport.openSession(listener, { use: 'publish', client: '127.0.0.1', timeout: 30_000 });
  const client = new Client();
  const allocation = await client.allocate([StunAttribute.REQUESTED_ADDRESS_FAMILY, Buffer.of(family, 0, 0, 0)]);
  expect(allocation.type).toBe(0x0103);
  expect((await client.bind(ours)).type).toBe(0x0109);
  const { ufrag, password: icePassword } = session.credentials;
  const transaction = randomBytes(12);
  const attributes = [[StunAttribute.USERNAME, Buffer.from(`${ufrag}:x`)]] as const;
  client.socket.write(
    frameChannelData(CHANNEL, serializeStun({ type: StunType.BINDING_REQUEST, transaction, attributes, password: icePassword })),
  );
  const answer = parseStun(await until('the answer', () => client.datagrams[0] ?? null, WAIT));
  expect(answer.type).toBe(StunType.BINDING_SUCCESS);
  const mapped = answer.attributes.get(StunAttribute.XOR_MAPPED_ADDRESS) ?? Buffer.alloc(0);
  expect(readXorMappedAddress(mapped, transaction).host).toBe(relayed);
  expect(session.place).toMatch(/^relay 127\.0\.0\.1:\d+$/);
  client.socket.resetAndDestroy();
  await until('the end of the session', () => ends.length === 1, WAIT);
  expect(ends).toEqual(['the TCP connection ended']);
});

test('connections that are reset or do not speak TURN leave other allocations connected', async () => {
  const other = new Client();
  await other.allocate();
  for (let n = 0; n < 20; n += 1)
    new Client().socket.once('connect', function reset(this: Socket) {
      this.resetAndDestroy();
    });
  const stranger = new Client();
  stranger.socket.write('GET / HTTP/1.1\r\nHost: relay\r\n\r\n');
  await until('the foreign connection is closed', () => stranger.closed, WAIT);
  expect(logger.lines.map(({ message }) => message)).toContain('a connection to the relay was closed: it does not speak TURN');
  expect((await other.bind('198.51.100.1')).type).toBe(0x0109);
  expect(other.closed).toBe(false);
});

test('a connection without an allocation is closed after a while, also if it was deleted; a connection with one is kept', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const [idle, busy, done] = [new Client(), new Client(), new Client()];
  for (const client of [busy, done]) await client.allocate();
  await done.ask(StunType.REFRESH_REQUEST, () => [[StunAttribute.LIFETIME, Buffer.alloc(4)]]);
  await idle.ask(StunType.BINDING_REQUEST, () => []);
  vi.advanceTimersByTime(10_000);
  vi.useRealTimers();
  await until('the idle connections are closed', () => idle.closed && done.closed, WAIT);
  expect((await busy.bind('198.51.100.1')).type).toBe(0x0109);
});

test('an allocation without a session is closed later, one with a session is kept', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const listener = { connected: () => undefined, rtcp: () => undefined, closed: () => undefined };
  const session = transport.openSession(listener, { use: 'play', client: '127.0.0.1', timeout: 0 });
  const [unused, used] = [new Client(), new Client()];
  for (const client of [unused, used]) {
    await client.allocate();
    await client.bind('198.51.100.1');
  }
  expect(transport.guests.size).toBe(2);
  const attributes = [[StunAttribute.USERNAME, Buffer.from(`${session.credentials.ufrag}:x`)]] as const;
  const check = serializeStun({
    ...{ type: StunType.BINDING_REQUEST, transaction: randomBytes(12), attributes },
    password: session.credentials.password,
  });
  used.socket.write(frameChannelData(CHANNEL, check));
  await until('the answer', () => used.datagrams[0] ?? null, WAIT);
  expect(transport.guests.size).toBe(1);
  vi.advanceTimersByTime(59_999);
  expect((await unused.bind('198.51.100.1')).type).toBe(0x0109);
  vi.advanceTimersByTime(1);
  vi.useRealTimers();
  await until('the unused allocation is closed', () => unused.closed, WAIT);
  expect((await used.bind('198.51.100.1')).type).toBe(0x0109);
  expect(transport.guests.size).toBe(0);
  session.close();
  await until('the used allocation is closed with its session', () => used.closed, WAIT);
});

test('an occupied port is named', async () => {
  const listen = [{ host: '127.0.0.1', port: relay.ports[0] ?? 0 }];
  await expect(TurnRelay.open({ listen, transport, clock: systemClock, logger })).rejects.toThrow(
    /^TCP port \d+ of 127\.0\.0\.1 cannot be opened/,
  );
});

test('a connection that causes a fault is closed, and the others continue', async () => {
  const [broken, sound] = [new Client(), new Client()];
  for (const client of [broken, sound]) {
    await client.allocate();
    await client.bind('198.51.100.1');
  }
  const fault = new TypeError('made up');
  vi.spyOn(transport, 'arrived').mockImplementationOnce(() => {
    throw fault;
  });
  broken.socket.write(frameChannelData(CHANNEL, randomBytes(20)));
  await until('the broken connection is closed', () => broken.closed, WAIT);
  expect(logger.matching('a connection to the relay failed inside the server')).toMatchObject([{ level: 'error', fields: { err: fault } }]);
  expect((await sound.bind('198.51.100.1')).type).toBe(0x0109);
});

test('a session that cannot be ended with its connection does not prevent the ends of others', async () => {
  const client = new Client();
  await client.allocate();
  const lost: string[] = [];
  const sessions = ['198.51.100.1', '198.51.100.2'].map((host) => ({
    closed: false,
    lost: () => {
      lost.push(host);
      if (lost.length === 1) throw new TypeError('made up');
    },
  }));
  const arrived = vi.spyOn(transport, 'arrived');
  for (const [n, session] of sessions.entries()) {
    arrived.mockReturnValueOnce(session as never);
    await client.bind(`198.51.100.${n + 1}`, CHANNEL + n);
    client.socket.write(frameChannelData(CHANNEL + n, randomBytes(20)));
    await until('the packet has arrived', () => arrived.mock.calls.length === n + 1, WAIT);
  }
  client.socket.resetAndDestroy();
  await until('the ends of both sessions', () => lost.length === 2, WAIT);
  expect(logger.matching('a relayed session could not be ended')).toHaveLength(1);
});
