import { expect, test } from 'vitest';
import { metricsText } from '../../test/fakes/metrics-text.ts';
import { LabelSlots } from './label-slots.ts';
import { MetricSeries } from './metric-series.ts';

interface Thing {
  readonly name: string;
  readonly bytes: number;
  readonly delay?: number;
}

/** Makes pages about things, of which `limit` have their own labels; omits the lines that describe metrics. */
function pages(limit: number) {
  const series = new MetricSeries<Thing>(
    [
      { name: 'bytes_total', help: 'Bytes', type: 'counter', value: ({ bytes }) => bytes },
      { name: 'delay_seconds', help: 'Delay', type: 'gauge', others: 'max', value: ({ delay }) => delay },
      { name: 'born_seconds', help: 'Birth', type: 'gauge', others: 'none', value: () => 1 },
    ],
    'name="others"',
  );
  const streams = new LabelSlots(limit);
  const text = (things: readonly Thing[]): string[] => {
    const collect = (page: Parameters<MetricSeries<Thing>['begin']>[0]): void => {
      series.begin(page);
      for (const thing of things)
        series.add(
          thing,
          page.streams.of(thing.name, () => `name="${thing.name}"`),
          thing.name,
        );
      series.end();
    };
    return metricsText({ collect }, { streams })
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
  };
  return { text, streams };
}

test('each thing has its own series within the limit, and none for an unknown value', () => {
  const { text } = pages(2);
  expect(
    text([
      { name: 'a', bytes: 1, delay: 2 },
      { name: 'b', bytes: 3 },
    ]),
  ).toEqual([
    'bytes_total{name="a"} 1',
    'bytes_total{name="b"} 3',
    'delay_seconds{name="a"} 2',
    'born_seconds{name="a"} 1',
    'born_seconds{name="b"} 1',
  ]);
});

test('further things are summed up, with counters that never fall when one ends or restarts', () => {
  const { text, streams } = pages(1);
  const first = { name: 'first', bytes: 1 };
  const sums = (things: readonly Thing[]): string[] => text([first, ...things]).filter((line) => line.includes('others'));
  expect(
    sums([
      { name: 'b', bytes: 10, delay: 3 },
      { name: 'c', bytes: 100, delay: 2 },
    ]),
  ).toEqual(['bytes_total{name="others"} 110', 'delay_seconds{name="others"} 3']);
  expect(sums([{ name: 'c', bytes: 150, delay: 2 }])).toEqual(['bytes_total{name="others"} 160', 'delay_seconds{name="others"} 2']);
  expect(sums([{ name: 'c', bytes: 5 }])).toEqual(['bytes_total{name="others"} 165', 'delay_seconds{name="others"} 0']);
  expect(sums([])).toEqual(['bytes_total{name="others"} 165', 'delay_seconds{name="others"} 0']);
  expect([streams.without, streams.refused]).toEqual([0, 2]);
});

test('a thing with labels keeps them while others arrive, and releases them when it is gone', () => {
  const { text, streams } = pages(1);
  const named = (things: readonly Thing[]): string[] => text(things).filter((line) => line.startsWith('bytes_total'));
  const [a, b] = [
    { name: 'a', bytes: 1 },
    { name: 'b', bytes: 2 },
  ];
  expect(named([a])).toEqual(['bytes_total{name="a"} 1']);
  expect(named([b, a])).toEqual(['bytes_total{name="a"} 1', 'bytes_total{name="others"} 2']);
  expect(streams.without).toBe(1);
  named([b]);
  expect(named([b])).toEqual(['bytes_total{name="b"} 2', 'bytes_total{name="others"} 2']);
  expect([streams.without, streams.refused]).toEqual([0, 1]);
});
