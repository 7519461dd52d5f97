import net from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { FakeStream } from '../../../test/fakes/fake-stream.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingSink } from '../../../test/fakes/pull-sink.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { selfSigned } from '../../../test/fakes/self-signed.ts';
import { videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { AVCC } from '../../../test/fixtures/bitstreams.ts';
import { ConnectionLimiter } from '../../util/connection-limiter.ts';
import { RefusalLog } from '../../util/refusal-log.ts';
import { OvtPublisher } from './ovt-publisher.ts';
import { OvtPullSource } from './ovt-pull-source.ts';

const IDENTITY = selfSigned('localhost');

class Live extends FakeStream {
  override tracks = [videoTrack({ config: AVCC.high720 })];
  override readonly name = 'live';
}

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** An origin with TLS that has one stream. */
async function origin(certificates = [{ hostNames: ['localhost'], ...IDENTITY }]) {
  const logger = new RecordingLogger();
  const refusals = new RefusalLog(logger);
  closing.push(() => refusals.close());
  const limiter = new ConnectionLimiter({ what: 'OVT edges', refusals });
  const publisher = new OvtPublisher({ logger, clock: new ManualClock() });
  await publisher.listen({ host: '127.0.0.1', port: 0, tls: true, limiter, virtualHostFor: () => 'default', hasApplication: () => true });
  publisher.setCertificates(certificates);
  closing.push(() => publisher.stop());
  const stream = new Live();
  const served = publisher.attach(stream);
  served.onTracks(stream.tracks);
  closing.push(() => served.close({ code: 'peer-left', detail: 'the test ends' }));
  return { port: publisher.ports[0] ?? 0, logger, publisher, served };
}

async function pull(url: string, ca?: string) {
  const sink = new RecordingSink();
  const logger = new RecordingLogger();
  const target = { url, settings: {}, ignoreSenderReports: false, sink, signal: AbortSignal.timeout(10_000), logger };
  const session = await new OvtPullSource(new ManualClock(), undefined, ca === undefined ? {} : { ca }).open(target);
  closing.push(() => session.close());
  return sink;
}

test('an edge that trusts the certificate of the origin plays, and learns that the stream ended', async () => {
  const { port, publisher, served } = await origin();
  const sink = await pull(`ovts://localhost:${port}/app/live`, IDENTITY.cert);
  expect(served.sessions).toBe(1);
  await publisher.stop();
  await expect.poll(() => sink.reason).toMatchObject({ code: 'peer-left' });
});

test.each([
  { name: 'a certificate of an unknown authority', host: 'localhost', ca: undefined, why: /self-signed/ },
  { name: 'the certificate of another host', host: '127.0.0.1', ca: IDENTITY.cert, why: /does not match certificate's altnames/ },
  { name: 'an authority that cannot be read', host: 'localhost', ca: '', why: /self-signed/ },
])('an edge does not play from an origin with $name', async ({ host, ca, why }) => {
  const { port, publisher, served } = await origin();
  await expect(pull(`ovts://${host}:${port}/app/live`, ca)).rejects.toThrow(why);
  expect(served.sessions).toBe(0);
  await expect.poll(() => publisher.connections).toBe(0);
});

test('a port with TLS refuses a plain connection, and serves other edges during a silent handshake', async () => {
  const { port, logger, publisher } = await origin();
  await expect(pull(`ovt://localhost:${port}/app/live`)).rejects.toThrow();
  await expect.poll(() => logger.lines.map(({ message }) => message)).toContain('OVT connection closed in the TLS handshake');
  await expect(fetch(`http://localhost:${port}/`)).rejects.toThrow();
  await expect
    .poll(() => logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message))
    .toEqual([
      `OVT edges closed: plain OVT was spoken to port ${port}, which speaks TLS: use ovts://`,
      `OVT edges closed: HTTP was spoken to port ${port}, which speaks OVT: players, the API and the console have other ports`,
    ]);
  expect(publisher.connections).toBe(0);
  // A silent connection does not hold up the end.
  const silent = net.connect({ port, host: '127.0.0.1' });
  closing.push(() => silent.destroy());
  await pull(`ovts://localhost:${port}/app/live`, IDENTITY.cert);
  await publisher.stop();
});

test('an edge with TLS does not play from a port without', async () => {
  const publisher = new OvtPublisher({ logger: new RecordingLogger(), clock: new ManualClock() });
  await publisher.listen({ host: '127.0.0.1', port: 0, virtualHostFor: () => 'default', hasApplication: () => true });
  closing.push(() => publisher.stop());
  await expect(pull(`ovts://localhost:${publisher.ports[0]}/app/live`, IDENTITY.cert)).rejects.toThrow();
});
