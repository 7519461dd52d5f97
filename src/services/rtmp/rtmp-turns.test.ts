import net from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import { HeldTurns } from '../../../test/fakes/held-turns.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { informationOf, RtmpPublisher } from '../../../test/fakes/rtmp-publisher.ts';
import { until } from '../../../test/harness/poll.ts';
import { systemClock } from '../../util/clock.ts';
import { NO_TURNS, type Turns } from '../../util/newcomer-turns.ts';
import { RtmpProvider } from './rtmp-provider.ts';

const AVC_CONFIG = '17000000000142001f';
const AVC_KEY = '1701000000000000026588';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(turns: Turns) {
  const gate = new FakeIngestGate();
  const logger = new RecordingLogger();
  const timeouts = { trackWait: 0 };
  const provider = new RtmpProvider({ gate, logger, turns, clock: systemClock, host: '127.0.0.1', port: 0, timeouts });
  await provider.start();
  cleanups.push(() => provider.stop());
  return { gate, logger, provider, port: provider.port };
}

/** Begins a handshake; resolves when the connection is gone. */
function greet(port: number): Promise<void> {
  const socket = net.connect({ port, host: '127.0.0.1' });
  socket.on('error', () => undefined).resume();
  socket.write(Buffer.alloc(1537, 3));
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

async function waiting(turns: HeldTurns, count: number): Promise<void> {
  await until(`${count} turns`, () => turns.waiting.length >= count, { deadlineMs: 5000 });
}

test('a new connection and its commands wait for a turn; media of a publisher do not', async () => {
  const turns = new HeldTurns();
  const { gate, provider, port } = await start(turns);
  const published = RtmpPublisher.publish(port, { key: 'live' });
  await waiting(turns, 1);
  expect(provider.accepted).toBe(1);
  for (let entered = 0; gate.streams.length === 0; entered += 1) {
    await waiting(turns, entered + 1);
    // While a turn is awaited, nothing more of the connection is read.
    expect(turns.waiting).toHaveLength(entered + 1);
    turns.waiting[entered]?.enter();
  }
  const publisher = await published;
  cleanups.push(() => publisher.close());
  const [stream] = gate.streams;
  expect(stream?.request).toMatchObject({ streamName: 'live', client: '127.0.0.1' });
  expect(turns.waiting.every(({ client }) => client === '127.0.0.1')).toBe(true);
  const before = turns.waiting.length;
  publisher.video(0, AVC_CONFIG);
  for (let frame = 0; frame < 5; frame += 1) publisher.video(frame * 40, AVC_KEY);
  await stream?.until(({ packets }) => packets.length === 5);
  expect(turns.waiting).toHaveLength(before);
});

test('a connection that finds no room to wait in is closed and counted', async () => {
  const turns = new HeldTurns();
  const { provider, port } = await start(turns);
  const closed = greet(port);
  await waiting(turns, 1);
  turns.waiting[0]?.refused('there is no room');
  await until('the connection to go', () => provider.connections === 0, { deadlineMs: 5000 });
  expect(provider.dropped).toBe(1);
  await closed;
});

test('a connection that closes while it waits leaves the queue, and a late turn has no effect', async () => {
  const turns = new HeldTurns();
  const { gate, logger, provider, port } = await start(turns);
  const closed = greet(port);
  await waiting(turns, 1);
  turns.waiting[0]?.enter();
  await waiting(turns, 2);
  await provider.stop();
  expect(turns.left).toBe(1);
  turns.waiting[1]?.enter();
  expect(gate.streams).toEqual([]);
  expect(logger.matching('RTMP connection closed')).toHaveLength(1);
  await closed;
});

test.each(['enter', 'refused'] as const)('a stream whose publisher has left ends at its turn, also after a refusal (%s)', async (act) => {
  const turns = new HeldTurns();
  const gone: { turns: Turns } = { turns: NO_TURNS };
  const { gate, provider, port } = await start({ take: (newcomer) => gone.turns.take(newcomer), leave: () => undefined });
  const publisher = await RtmpPublisher.publish(port, { key: 'live' });
  const stream = await gate.stream();
  gone.turns = turns;
  await publisher.close();
  await waiting(turns, 1);
  await until('the socket to go', () => provider.connections === 0, { deadlineMs: 5000 });
  expect(turns.waiting).toHaveLength(1);
  expect(stream.closed).toBe(false);
  turns.waiting[0]?.[act]('there is no room');
  expect(stream.closeReason).toMatchObject({ code: 'peer-left' });
});

test.each([
  ['finds no room to begin in', 'no-room', 'Too many streams are beginning at once: try again.'],
  ['is refused by a control server', 'denied', 'The stream is not allowed here.'],
] as const)('a publisher whose stream %s gets the reason, and the log has it', async (_what, code, description) => {
  const { gate, logger, port } = await start(NO_TURNS);
  const publisher = await RtmpPublisher.publish(port, { key: 'live' });
  cleanups.push(() => publisher.close());
  const stream = await gate.stream();
  stream.request.onClose({ code, detail: 'http://10.0.0.1/ says why' });
  await publisher.closed;
  const statuses = publisher.commands().filter(({ name }) => name === 'onStatus');
  expect(informationOf(statuses.at(-1)!)).toEqual({
    level: 'error',
    code: 'NetStream.Publish.Rejected',
    description,
  });
  expect(logger.matching('publisher refused: http://10.0.0.1/ says why')).toMatchObject([
    { level: 'warn', fields: { code, app: 'app', stream: 'live' } },
  ]);
  expect((await logger.line('RTMP connection closed')).fields).toMatchObject({ code });
});
