import { expect, test } from 'vitest';
import { FakeGatekeeper, FakeLease } from '../../../test/fakes/fake-gatekeeper.ts';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import type { CloseReason } from '../../core/ingest.ts';
import { AmfObject, type AmfValue } from '../../wire/rtmp/amf.ts';
import { serializeAmf0 } from '../../wire/rtmp/amf0.ts';
import { MessageType, type RtmpMessage } from '../../wire/rtmp/message.ts';
import { DEFAULT_RTMP_LIMITS, DEFAULT_RTMP_TIMEOUTS } from './rtmp-options.ts';
import { RtmpSession, type SessionLink } from './rtmp-session.ts';

function command(name: string, transactionId: number, ...args: readonly AmfValue[]): RtmpMessage {
  const payload = serializeAmf0([name, transactionId, ...args]);
  return { chunkStreamId: 3, typeId: MessageType.COMMAND_AMF0, streamId: 0, timestamp: 0, payload };
}

/** A session that has connected, and the calls to its connection. */
function connected(access: FakeGatekeeper, gate = new FakeIngestGate()) {
  const told = { isReading: true, closes: [] as CloseReason[], faults: [] as unknown[] };
  const link: SessionLink = {
    local: { host: '127.0.0.1', port: 1935, scheme: 'rtmp' },
    sourceUrl: 'TCP://192.0.2.1:1',
    client: { address: '192.0.2.1', port: 1 },
    send: () => undefined,
    setChunkSize: () => undefined,
    onPublishing: () => undefined,
    onStarted: () => undefined,
    onUnpublished: () => undefined,
    onMalformed: () => undefined,
    onUnsupported: () => undefined,
    pauseReading: () => {
      told.isReading = false;
    },
    resumeReading: () => {
      told.isReading = true;
    },
    endRest: () => undefined,
    close: (reason) => over(reason),
    closeAfterFlush: (reason) => over(reason),
    failed: (error) => told.faults.push(error),
    onRefused: () => undefined,
  };
  // A stream starts with its second frame.
  const limits = { ...DEFAULT_RTMP_LIMITS, heldPackets: 1 };
  const session = new RtmpSession({ gate, access, link, limits, timeouts: DEFAULT_RTMP_TIMEOUTS, enhanced: true, clientId: 1 });
  const over = (reason: CloseReason): void => {
    told.closes.push(reason);
    session.end(reason);
  };
  session.receive(command('connect', 1, AmfObject.of({ app: 'app', tcUrl: 'rtmp://media.example/app' })));
  return { session, gate, told };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('nothing is read while a second publication, requested right after the first, waits for its verdict', async () => {
  const verdicts = [Promise.withResolvers<FakeLease>(), Promise.withResolvers<FakeLease>()];
  const access = new FakeGatekeeper(() => verdicts[access.asked.length - 1]!.promise);
  const { session, gate, told } = connected(access);
  session.receive(command('publish', 2, null, 'first', 'live'));
  session.receive(command('deleteStream', 3, null, 1));
  session.receive(command('publish', 4, null, 'second', 'live'));
  verdicts[0]!.resolve(new FakeLease());
  await turn();
  expect(access.asked.map(({ place }) => place.stream)).toEqual(['first', 'second']);
  expect([session.judging, told.isReading]).toEqual([true, false]);
  verdicts[1]!.resolve(new FakeLease());
  await turn();
  expect([session.judging, told.isReading]).toEqual([false, true]);
  expect(gate.streams.map(({ name, closed }) => [name, closed])).toEqual([
    ['first', true],
    ['second', false],
  ]);
});

test('commands held after the end of the connection start nothing', async () => {
  const { access, answer } = FakeGatekeeper.waiting();
  const { session, gate, told } = connected(access);
  session.receive(command('publish', 2, null, 'live', 'live'));
  session.receive(command('deleteStream', 3, null, 1));
  session.receive(command('publish', 4, null, '', 'live'));
  session.receive(command('publish', 5, null, 'orphan', 'live'));
  answer(new FakeLease());
  await turn();
  expect(told.closes).toMatchObject([{ detail: 'publish without a stream name' }]);
  expect(gate.streams.map(({ name, closed }) => [name, closed])).toEqual([['live', true]]);
});

test('reading stays paused when media held during the verdict congest the stream', async () => {
  const { access, answer } = FakeGatekeeper.waiting();
  const gate = new FakeIngestGate();
  const { session, told } = connected(access, gate);
  session.receive(command('publish', 2, null, 'live', 'live'));
  for (const tag of ['17000000000142001f', '1701000000000000026588', '1701000000000000026588']) {
    session.receive({ ...command('', 0), typeId: MessageType.VIDEO, payload: Buffer.from(tag, 'hex') });
  }
  const opened = gate.openIngest.bind(gate);
  gate.openIngest = (target, request) => {
    const stream = opened(target, request);
    return Object.assign(stream, { setTracks: () => request.onCongested?.() });
  };
  answer(new FakeLease());
  await turn();
  expect(told.faults).toEqual([]);
  expect(told.isReading).toBe(false);
});

test('an admitted publisher that meets an internal fault closes its lease', async () => {
  const stay = new FakeLease();
  const gate = new FakeIngestGate();
  gate.openIngest = () => {
    throw new Error('a fault');
  };
  const { session, told } = connected(new FakeGatekeeper(() => Promise.resolve(stay)), gate);
  session.receive(command('publish', 2, null, 'live', 'live'));
  await turn();
  expect(told.faults).toEqual([new Error('a fault')]);
  expect(stay.closes).toBe(1);
});
