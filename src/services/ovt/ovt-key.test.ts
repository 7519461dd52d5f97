import { afterEach, expect, test } from 'vitest';
import { FakeStream } from '../../../test/fakes/fake-stream.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { FakeOvtOrigin } from '../../../test/fakes/ovt-origin.ts';
import { RecordingSink } from '../../../test/fakes/pull-sink.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { AVCC } from '../../../test/fixtures/bitstreams.ts';
import { isProven, newChallenge, proofOf } from './ovt-key.ts';
import { OvtPublisher } from './ovt-publisher.ts';
import { OvtPullSource } from './ovt-pull-source.ts';

const KEY = 'a key of all servers';

class Live extends FakeStream {
  override tracks = [videoTrack({ config: AVCC.high720 })];
  override readonly name = 'live';
}

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** An origin with one stream, which counts the lookups. */
async function origin(key?: string) {
  const logger = new RecordingLogger();
  let lookUps = 0;
  const find = (): null => {
    lookUps += 1;
    return null;
  };
  const publisher = new OvtPublisher({ logger, clock: new ManualClock(), finder: { find }, key });
  await publisher.listen({ host: '127.0.0.1', port: 0, virtualHostFor: () => 'default', hasApplication: () => true });
  closing.push(() => publisher.stop());
  const stream = new Live();
  const served = publisher.attach(stream);
  served.onTracks(stream.tracks);
  closing.push(() => served.close({ code: 'peer-left', detail: 'the test ends' }));
  return { port: publisher.ports[0] ?? 0, logger, lookUps: () => lookUps, served };
}

async function pull(port: number, key?: string, name = 'live') {
  const url = `ovt://127.0.0.1:${port}/app/${name}`;
  const sink = new RecordingSink();
  const target = {
    url,
    settings: {},
    ignoreSenderReports: false,
    sink,
    signal: AbortSignal.timeout(10_000),
    logger: new RecordingLogger(),
  };
  const session = await new OvtPullSource(new ManualClock(), undefined, key === undefined ? {} : { key }).open(target);
  closing.push(() => session.close());
  return sink;
}

test('an edge that knows the key of the origin plays', async () => {
  const { port, served } = await origin(KEY);
  expect((await pull(port, KEY)).tracks).toHaveLength(1);
  expect(served.sessions).toBe(1);
});

test('an edge without the key or with a wrong key is refused with the reason, before any look-up', async () => {
  const { port, logger, lookUps, served } = await origin(KEY);
  await expect(pull(port)).rejects.toThrow('the origin asks for a key (Bind/Providers/OVT/SecretKey)');
  await expect(pull(port, 'a key of somebody else', 'nowhere')).rejects.toThrow('401 The key is another one than that of this server');
  await expect(pull(port, undefined, 'nowhere')).rejects.toThrow('key');
  expect([lookUps(), served.sessions]).toEqual([0, 0]);
  const told = logger.lines.map(({ message }) => message).filter((message) => message.startsWith('an OVT edge was refused'));
  expect(told).toContain('an OVT edge was refused: it has proven no key');
  expect(told).toContain('an OVT edge was refused: its key is another one');
});

test('an edge with a key plays from an origin without one', async () => {
  const { port } = await origin();
  expect((await pull(port, KEY)).tracks).toHaveLength(1);
});

test('the key is never transmitted, and a proof is valid for one request of one connection', async () => {
  const challenge = newChallenge();
  const described = { id: 2, command: 'describe', target: 'ovt://h/app/live' };
  const proof = proofOf(KEY, challenge, described);
  expect(isProven(KEY, challenge, { ...described, proof })).toBe(true);
  expect(isProven(KEY, newChallenge(), { ...described, proof })).toBe(false);
  for (const other of [{ id: 3 }, { command: 'play' }, { target: 'ovt://h/app/other' }, { proof: '' }]) {
    expect(isProven(KEY, challenge, { ...described, proof, ...other })).toBe(false);
  }
  const fake = new FakeOvtOrigin(({ id }) =>
    id === 1 ? { code: 401, message: 'key', contents: { challenge } } : { code: 404, message: 'no' },
  );
  await fake.start();
  closing.push(() => fake.stop());
  await expect(pull(fake.port, KEY)).rejects.toThrow('404 no');
  expect(fake.requests.map(({ proof: given }) => given !== undefined)).toEqual([false, true]);
  expect(JSON.stringify(fake.requests)).not.toContain(KEY);
});
