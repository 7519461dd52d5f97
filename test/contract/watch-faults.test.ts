/** A periodic check fails once: the fault is logged, and the next check runs as usual. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { SilenceWatch } from '../../src/core/silence-watch.ts';
import { removingUnusedApplications } from '../../src/core/template-applications.ts';
import { MpegtsProvider } from '../../src/services/mpegts/mpegts-provider.ts';
import { PortSource } from '../../src/services/mpegts/port-source.ts';
import { OvtConnection } from '../../src/services/ovt/ovt-connection.ts';
import { OvtPublisher } from '../../src/services/ovt/ovt-publisher.ts';
import { RtmpConnection } from '../../src/services/rtmp/rtmp-connection.ts';
import { RtmpProvider } from '../../src/services/rtmp/rtmp-provider.ts';
import { systemClock } from '../../src/util/clock.ts';
import { FakeIngestGate } from '../fakes/fake-ingest-gate.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { until } from '../harness/poll.ts';

const FAULT = new TypeError('made up');
const WAIT = { deadlineMs: 30_000, everyMs: 5 };
const fail = (): never => {
  throw FAULT;
};

const closings: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  for (const close of closings.splice(0).reverse()) await close();
});

/** A client that has sent nothing so far. */
async function silentClient(port: number): Promise<void> {
  const client = connect(port, '127.0.0.1').on('error', () => undefined);
  closings.push(() => client.destroy());
  await once(client, 'connect');
}

/** Waits for the log line about the fault, and for a check after it. */
async function lookedAgain(
  logger: RecordingLogger,
  line: string,
  looks: { readonly mock: { readonly calls: readonly unknown[] } },
): Promise<void> {
  await until('another look', () => looks.mock.calls.length > 1, WAIT);
  expect(logger.matching(line)).toMatchObject([{ level: 'error', fields: { err: FAULT } }]);
}

test('over RTMP connections', async () => {
  const logger = new RecordingLogger();
  const looks = vi.spyOn(RtmpConnection.prototype, 'checkDeadlines').mockImplementationOnce(fail);
  const provider = new RtmpProvider({ gate: new FakeIngestGate(), logger, clock: systemClock, host: '127.0.0.1', port: 0 });
  await provider.start();
  closings.push(() => provider.stop());
  await silentClient(provider.port);
  await lookedAgain(logger, 'the watch over RTMP connections failed inside the server', looks);
});

test('over MPEG-TS ports', async () => {
  const logger = new RecordingLogger();
  const looks = vi.spyOn(PortSource.prototype, 'checkDeadlines').mockImplementationOnce(fail);
  const provider = new MpegtsProvider({
    ...{ logger, clock: systemClock, host: '127.0.0.1', protocol: 'udp', ports: [0] },
    route: () => ({ gate: new FakeIngestGate(), target: null }) as never,
  });
  await provider.start();
  closings.push(() => provider.stop());
  await lookedAgain(logger, 'the watch over MPEG-TS ports failed inside the server', looks);
});

test('over OVT edges, and closes only the connection that caused the fault', async () => {
  const logger = new RecordingLogger();
  const publisher = new OvtPublisher({ clock: systemClock, logger });
  closings.push(() => publisher.stop());
  await publisher.listen({ host: '127.0.0.1', port: 0, virtualHostFor: () => null, hasApplication: () => false, timeoutScale: 0.05 });
  const [port = 0] = publisher.ports;
  await silentClient(port);
  await silentClient(port);
  await until('two connections', () => publisher.connections === 2, WAIT);
  const looks = vi.spyOn(OvtConnection.prototype, 'checkDeadline').mockImplementationOnce(fail);
  await until('the end of the first connection', () => publisher.connections < 2, WAIT);
  await lookedAgain(logger, 'OVT connection failed inside the server', looks);
});

test('over silent sources', () => {
  vi.useFakeTimers();
  const logger = new RecordingLogger();
  const clock = new ManualClock();
  const silent = vi.fn().mockImplementationOnce(fail);
  const watch = new SilenceWatch({ clock, logger, onSilent: silent });
  watch.start(1000);
  closings.push(() => watch.stop());
  for (let n = 0; n < 12; n += 1) {
    clock.advance(100);
    vi.advanceTimersByTime(100);
  }
  expect(silent.mock.calls.length).toBeGreaterThan(1);
  expect(logger.lines).toMatchObject([{ level: 'error', message: 'the watch over a stream failed inside the server' }]);
});

test('over unused applications', async () => {
  vi.useFakeTimers();
  const logger = new RecordingLogger();
  const removal = vi.fn().mockImplementationOnce(fail);
  const running = removingUnusedApplications({ removeUnused: removal }, logger);
  closings.push(() => running.stop());
  vi.advanceTimersByTime(20_000);
  expect(removal).toHaveBeenCalledTimes(2);
  expect(logger.lines).toMatchObject([{ level: 'error', message: 'the removal of unused applications failed inside the server' }]);
});
