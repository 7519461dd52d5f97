import { expect, test } from 'vitest';
import type { MillraceClient } from '../client/index.ts';
import type { StreamInformation } from './server-facts.ts';
import { StreamSamples } from './stream-samples.ts';

const NAME = { vhost: 'default', app: 'app', stream: 'live' };
const NOW = Date.parse('2026-11-21T09:10:00.000Z');
const INFORMATION = {
  input: { tracks: [{ type: 'Audio' }, { type: 'Video', video: { framerateLatest: 25, keyFrameIntervalLatest: 50 } }] },
} as unknown as StreamInformation;

function columns({ history }: StreamSamples): (number | null)[][] {
  return history.names.map((name) => history.column(name));
}

test('rates cover the last ten seconds, and restart with a new stream of the same name', () => {
  const samples = new StreamSamples();
  const look = (second: number, bytesIn: number, bytesOut: number): void =>
    samples.add(NOW + second * 1000, INFORMATION, { totalBytesIn: bytesIn, totalBytesOut: bytesOut }, 3);
  look(0, 1000, 0);
  look(2, 3000, 0);
  look(10, 11_000, 20_000);
  look(12, 15_000, 20_000);
  look(14, 500, 0);
  look(16, 1500, 0);
  const rates = [
    [null, 8000, 8000, 9600, null, 4000],
    [null, 0, 16_000, 16_000, null, 0],
  ];
  expect(columns(samples)).toEqual([...rates, ...[25, 50, 3].map((value) => Array(6).fill(value))]);
});

test('samples kept by the server precede the first look, and a server without them is accepted', async () => {
  const samples = new StreamSamples();
  samples.add(NOW, INFORMATION, { totalBytesIn: 0, totalBytesOut: 0 }, 1);
  const refuse = { get: async () => Promise.reject(new Error('404')) } as unknown as MillraceClient;
  await samples.recall(refuse, NAME);
  expect(samples.history.size).toBe(1);
  const kept = [
    { time: '2026-11-21T09:00:00.000+00:00', throughputIn: 1000, throughputOut: 5, viewers: 2, framerate: 24, keyFrameInterval: 48 },
    { time: '2026-11-21T09:00:10.000+00:00', throughputIn: 2000, throughputOut: 0, viewers: 0 },
  ];
  const asked: unknown[] = [];
  const client = {
    get: async (...args: unknown[]) => {
      asked.push(args);
      return { intervalMs: 10_000, samples: kept };
    },
  } as unknown as MillraceClient;
  await samples.recall(client, NAME);
  expect(asked).toEqual([['/v2/vhosts/{vhost}/apps/{app}/streams/{stream}/history', { path: NAME }]]);
  expect(samples.history.times()).toEqual([...kept.map(({ time }) => Date.parse(time)), NOW].map((ms) => ms / 1000));
  expect(columns(samples)).toEqual([
    [8000, 16_000, null],
    [40, 0, null],
    [24, null, 25],
    [48, null, 50],
    [2, 0, 1],
  ]);
});
