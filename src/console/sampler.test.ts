import { expect, onTestFinished, test, vi } from 'vitest';
import type { MillraceClient } from '../client/index.ts';
import type { LiveClock } from './live-updates.ts';
import { Sampler } from './sampler.ts';

const PAST = [
  {
    time: '2026-11-21T09:00:00.000+00:00',
    throughputIn: 1000,
    throughputOut: 0,
    connections: { webrtc: 2, push: 9 },
    cpu: 0.5,
    eventLoop: 0.2,
    memory: 7,
  },
  { time: '2026-11-21T09:00:10.000+00:00', throughputIn: 2000, throughputOut: 5, connections: {}, cpu: 0.25, eventLoop: 0.1, memory: 8 },
];

/** A client whose server gives these answers; a path without one: 404. */
function clientOf(answers: Readonly<Record<string, unknown>>): MillraceClient {
  const get = async (path: string): Promise<unknown> => {
    if (answers[path] === undefined) throw new Error('404');
    return answers[path];
  };
  return { get, events: () => [] } as unknown as MillraceClient;
}

const NEVER = { follow: () => () => undefined, changed: () => undefined, isTold: false } as unknown as LiveClock;

test('figures from before the console was opened are in its charts', async () => {
  const sampler = new Sampler(clientOf({ '/v2/internals/history': { intervalMs: 10_000, samples: PAST } }));
  const stop = sampler.start(NEVER);
  await expect.poll(() => sampler.history.size).toBe(2);
  stop();
  const { history } = sampler;
  expect(history.times()).toEqual(PAST.map(({ time }) => Date.parse(time) / 1000));
  expect(['in', 'out', 'webrtc', 'llhls', 'cpu', 'loop', 'memory', 'delay'].map((name) => history.column(name as 'in'))).toEqual([
    ...[
      [8000, 16_000],
      [0, 40],
      [2, 0],
      [0, 0],
      [50, 25],
      [20, 10],
      [7, 8],
    ],
    [null, null],
  ]);
});

test('charts of a server without kept samples start now', async () => {
  const answers = {
    '/v1/stats/current': { totalBytesIn: 1, totalBytesOut: 2, connections: {} },
    '/metrics': '',
    '/health': { status: 'ok' },
  };
  const sampler = new Sampler(clientOf(answers));
  const stop = sampler.start(NEVER);
  await expect.poll(() => sampler.history.size).toBe(1);
  stop();
  expect([sampler.isAnswering, sampler.history.knows('memory')]).toEqual([true, false]);
});

test('rates cover ten seconds with their bursts of segments, and restart with the counters of the server', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  const statistics = { totalBytesIn: 0, totalBytesOut: 0, connections: {} };
  let look = (): void => undefined;
  const clock = {
    ...NEVER,
    follow: (listener: () => void) => {
      look = listener;
      return () => undefined;
    },
  } as unknown as LiveClock;
  const sampler = new Sampler(clientOf({ '/v1/stats/current': statistics, '/metrics': '', '/health': { status: 'ok' } }));
  onTestFinished(sampler.start(clock));
  await expect.poll(() => sampler.history.size).toBe(1);
  // A viewer takes a segment of 1250 bytes every ten seconds.
  for (let second = 2; second <= 20; second += 2) {
    vi.setSystemTime(second * 1000);
    if (second % 10 === 4) statistics.totalBytesOut += 1250;
    look();
    await expect.poll(() => sampler.history.size).toBe(second / 2 + 1);
  }
  expect(sampler.history.column('out').slice(5)).toEqual([1000, 1000, 1000, 1000, 1000, 1000]);
  statistics.totalBytesOut = 10;
  for (const [at, rate] of [
    [22_000, null],
    [24_000, 0],
  ] as const) {
    vi.setSystemTime(at);
    look();
    await expect.poll(() => sampler.history.size).toBe(at / 2000 + 1);
    expect(sampler.history.last('out')).toBe(rate);
  }
});
