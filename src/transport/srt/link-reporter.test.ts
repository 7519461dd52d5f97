import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { newReceiverStatistics, newSenderStatistics } from '../../wire/srt/statistics.ts';
import { LinkReporter } from './link-reporter.ts';

const MINUTE = 60_000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function setting(): {
  readonly reporter: LinkReporter;
  readonly logger: RecordingLogger;
  readonly pass: () => void;
} {
  const clock = new ManualClock();
  const logger = new RecordingLogger();
  const reporter = new LinkReporter({ clock, logger });
  reporter.start();
  return {
    reporter,
    logger,
    pass: () => {
      clock.advance(MINUTE);
      vi.advanceTimersByTime(MINUTE);
    },
  };
}

function link(logger: RecordingLogger, session = '1') {
  const statistics = { rtt: 20, sender: newSenderStatistics(), receiver: newReceiverStatistics(), malformed: 0 };
  const labels = { session, peer: '192.0.2.1:5000', vhost: 'default', app: 'app', stream: 'live' };
  return { labels, logger: logger.child({ session }), statistics: structuredClone(statistics) };
}

test('logs a line a minute: at level info when a counter became worse, else at debug', () => {
  const { reporter, logger, pass } = setting();
  const watched = link(logger);
  reporter.add(watched);
  const levels: string[] = [];
  const round = (change: (statistics: typeof watched.statistics) => void): object => {
    const next = structuredClone(watched.statistics);
    change(next);
    watched.statistics = next;
    const before = logger.lines.length;
    pass();
    expect(logger.lines.length).toBe(before + 1);
    const line = logger.lines.at(-1);
    levels.push(line?.level ?? '');
    return line?.fields ?? {};
  };
  round(() => undefined);
  const rates = round(({ receiver, sender }) => {
    receiver.bytesDelivered += 7_500_000;
    sender.bytesSent += 15_000_000;
  });
  expect(rates).toMatchObject({ session: '1', rttMs: 20, kbpsIn: 1000, kbpsOut: 2000, lost: 0, damage: 0 });
  expect(levels.splice(0)).toEqual(['debug', 'debug']);
  expect(round(({ receiver }) => (receiver.packetsLost += 5))).toMatchObject({ lost: 5, damage: 0 });
  round(({ receiver }) => (receiver.packetsLost += 5));
  round(({ sender }) => (sender.packetsReportedLost += 6));
  expect(levels.splice(0)).toEqual(['info', 'debug', 'info']);
  expect(round(({ receiver }) => (receiver.packetsDroppedLate += 1))).toMatchObject({ tooLate: 1, damage: 1 });
  round(() => undefined);
  round((statistics) => {
    statistics.rtt = 50;
  });
  round((statistics) => {
    statistics.rtt = 55;
  });
  expect(levels.splice(0)).toEqual(['info', 'debug', 'info', 'debug']);
});

test('many connections that became worse fill no log', () => {
  const { reporter, logger, pass } = setting();
  for (let session = 0; session < 130; session += 1) {
    const watched = link(logger, String(session));
    watched.statistics.receiver.packetsLost = 1;
    reporter.add(watched);
  }
  pass();
  expect(logger.matching('SRT connection has degraded')).toHaveLength(100);
  expect(logger.matching('further SRT connections have degraded')[0]?.fields).toEqual({ connections: 30 });
});

test('statistics of all open connections are available at any time', () => {
  const { reporter, logger, pass } = setting();
  const [one, two] = [link(logger, '1'), link(logger, '2')];
  const unopened = { ...link(logger, '3'), statistics: null as never };
  for (const watched of [one, two, unopened]) reporter.add(watched);
  two.statistics.sender.packetsSent = 7;
  expect(reporter.statistics()).toMatchObject([
    { session: '1', stream: 'live', rtt: 20, sender: { packetsSent: 0 } },
    { session: '2', vhost: 'default', peer: '192.0.2.1:5000', sender: { packetsSent: 7 } },
  ]);
  reporter.delete(one);
  reporter.delete(one);
  expect(reporter.statistics()).toHaveLength(1);
  reporter.stop();
  reporter.stop();
  pass();
  expect(logger.lines).toEqual([]);
});

test('a connection whose statistics throw does not affect the reports on others', () => {
  const { reporter, logger, pass } = setting();
  const fault = new TypeError('made up');
  const broken = link(logger, '1');
  Object.defineProperty(broken, 'statistics', {
    get: () => {
      throw fault;
    },
  });
  const sound = link(logger, '2');
  for (const watched of [broken, sound]) reporter.add(watched);
  pass();
  expect(logger.lines).toMatchObject([
    { level: 'error', message: 'the report on an SRT connection failed', fields: { session: '1', err: fault } },
    { level: 'debug', message: 'SRT connection', fields: { session: '2' } },
  ]);
});

test('a report that fails is made again', () => {
  const { reporter, logger, pass } = setting();
  for (let session = 0; session < 101; session += 1) {
    const watched = link(logger, String(session));
    watched.statistics.receiver.packetsLost = 1;
    reporter.add(watched);
  }
  const further = vi.spyOn(logger, 'info').mockImplementation(() => {
    throw new TypeError('made up');
  });
  pass();
  expect(logger.matching('the report on SRT connections failed inside the server')).toHaveLength(1);
  further.mockRestore();
  const before = logger.lines.length;
  pass();
  expect(logger.lines.length - before).toBe(101);
});
