import { afterEach, expect, test, vi } from 'vitest';
import { DENIED, FakeGatekeeper, FakeLease } from '../../../test/fakes/fake-gatekeeper.ts';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { informationOf, RtmpPublisher } from '../../../test/fakes/rtmp-publisher.ts';
import { until } from '../../../test/harness/poll.ts';
import type { Gatekeeper } from '../../access/access-check.ts';
import { systemClock } from '../../util/clock.ts';
import { RtmpProvider } from './rtmp-provider.ts';

const AVC_CONFIG = '17000000000142001f';
const AVC_KEY = '1701000000000000026588';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(access: Gatekeeper, timeouts: { unpublishedSilence?: number } = {}) {
  const gate = new FakeIngestGate();
  const logger = new RecordingLogger();
  const options = { gate, access, logger, clock: systemClock, host: '127.0.0.1', port: 0, timeouts: { trackWait: 0, ...timeouts } };
  const provider = new RtmpProvider(options);
  await provider.start();
  cleanups.push(() => provider.stop());
  return { gate, logger, provider, port: provider.port };
}

/** Asks to publish, without waiting for the answer. */
async function ask(port: number, { tcUrl = `rtmp://media.example/app`, key = 'live?policy=p&signature=s' } = {}): Promise<RtmpPublisher> {
  const publisher = await RtmpPublisher.open(port);
  cleanups.push(() => publisher.close());
  publisher.connect({ tcUrl });
  publisher.call('createStream', 2, null);
  publisher.call('publish', 3, null, key, 'live');
  return publisher;
}

test('a publisher is judged by its whole URL, completed by the port of the server', async () => {
  const stay = new FakeLease();
  const access = new FakeGatekeeper(() => stay);
  const { gate, port } = await start(access);
  const publisher = await ask(port, { tcUrl: 'rtmp://media.example/app?a=1' });
  await publisher.command('onStatus');
  expect(access.asked).toEqual([
    {
      place: { host: 'media.example', app: 'app', stream: 'live' },
      request: {
        direction: 'incoming',
        protocol: 'rtmp',
        url: `rtmp://media.example:${port}/app/live?a=1&policy=p&signature=s`,
        client: { address: '127.0.0.1', port: publisher.socket.localPort, realIp: '127.0.0.1' },
      },
    },
  ]);
  expect(gate.streams).toHaveLength(1);
  publisher.close();
  await until('the end of the stay', () => stay.closes > 0, { deadlineMs: 5000 });
  expect(stay.closes).toBe(1);
});

test('a refused publisher gets the reason, is disconnected, and takes no stream name', async () => {
  const { gate, logger, port } = await start(new FakeGatekeeper(() => DENIED));
  const publisher = await ask(port);
  expect(informationOf(await publisher.command('onStatus'))).toMatchObject({
    level: 'error',
    code: 'NetStream.Publish.Rejected',
    description: 'Access denied: the URL has expired (url_expire).',
  });
  await publisher.closed;
  expect(gate.streams).toHaveLength(0);
  expect((await logger.line('RTMP connection closed')).fields).toMatchObject({
    code: 'denied',
    detail: expect.stringContaining('url-expired') as string,
  });
});

test('a publisher that waits for its verdict is not closed for silence, and loses none of its media', async () => {
  const { access, answer } = FakeGatekeeper.waiting();
  const { gate, port } = await start(access, { unpublishedSilence: 300 });
  const publisher = await ask(port);
  publisher.video(0, AVC_CONFIG);
  for (let frame = 0; frame < 5; frame += 1) publisher.video(frame * 40, AVC_KEY);
  await until('the question', () => access.asked.length === 1, { deadlineMs: 5000 });
  // A silent client that came later has been silent for too long.
  await (await RtmpPublisher.open(port)).closed;
  expect(publisher.socket.destroyed).toBe(false);
  expect(gate.streams).toHaveLength(0);
  answer(new FakeLease());
  await publisher.command('onStatus');
  const stream = await gate.stream();
  await stream.until(({ packets }) => packets.length === 5);
});

test('a lease ends at once when the publisher left before its verdict, and when no application accepts it', async () => {
  const { access, answer } = FakeGatekeeper.waiting();
  const { gate, provider, port } = await start(access);
  const publisher = await ask(port);
  await until('the question', () => access.asked.length === 1, { deadlineMs: 5000 });
  await provider.stop();
  await publisher.closed;
  const late = new FakeLease();
  answer(late);
  await vi.waitFor(() => expect(late.closes).toBe(1));
  expect(gate.streams).toHaveLength(0);

  const stay = new FakeLease();
  const second = await start(new FakeGatekeeper(() => stay));
  second.gate.refusal = 'no-application';
  await (await ask(second.port)).closed;
  expect(stay.closes).toBe(1);
});

test('a publication whose lease expires ends with the reason', async () => {
  const stay = new FakeLease();
  const { gate, logger, port } = await start(new FakeGatekeeper(() => stay));
  const publisher = await ask(port);
  await publisher.command('onStatus');
  stay.expire?.('the stream_expire of its signed URL has come');
  await publisher.closed;
  const reason = { code: 'expired', detail: 'the stream_expire of its signed URL has come' };
  expect((await logger.line('RTMP connection closed')).fields).toMatchObject(reason);
  expect((await gate.stream()).closeReason).toEqual(reason);
  expect(informationOf(publisher.commands().at(-1)!)).toMatchObject({
    level: 'error',
    description: expect.stringContaining('stream_expire') as string,
  });
  expect(stay.closes).toBe(1);
});

test('a publisher that a control server redirects publishes there, and ends by its original name', async () => {
  const stay = FakeLease.to('rtmp://other.example:1935/elsewhere/renamed?x=1');
  const { gate, port } = await start(new FakeGatekeeper(() => stay));
  const publisher = await ask(port);
  expect(informationOf(await publisher.command('onStatus'))).toMatchObject({ code: 'NetStream.Publish.Start' });
  expect(gate.streams[0]).toMatchObject({ target: { host: 'other.example', app: 'elsewhere' }, request: { streamName: 'renamed' } });
  publisher.call('FCUnpublish', 4, null, 'live');
  await until('the end of the stay', () => stay.closes === 1, { deadlineMs: 5000 });
});

test("a publisher that a control server refuses gets the server's text, and the log has the internal reason", async () => {
  const denied = { ...DENIED, said: 'you have not paid' };
  const { logger, port } = await start(new FakeGatekeeper(() => denied));
  const publisher = await ask(port);
  expect(informationOf(await publisher.command('onStatus'))).toMatchObject({ description: 'Access denied: you have not paid.' });
  expect((await logger.line('RTMP connection closed')).fields).toMatchObject({ detail: expect.stringContaining(DENIED.reason) as string });
});
