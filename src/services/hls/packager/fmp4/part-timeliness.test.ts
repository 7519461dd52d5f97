import { expect, test } from 'vitest';
import { ManualClock } from '../../../../../test/fakes/manual-clock.ts';
import { metricsText } from '../../../../../test/fakes/metrics-text.ts';
import { PartTimeliness } from './part-timeliness.ts';

const ADDRESS = { vhost: 'default', app: 'app', stream: 'live' };
const TARGET = 0.5;

function figures(timeliness: PartTimeliness): Record<string, number> {
  return Object.fromEntries(
    [...metricsText(timeliness).matchAll(/^millrace_llhls_(\w+(?:\{le="[^"]*"\})?)\S* (\S+)$/gm)].map(([, name, value]) => [
      name,
      Number(value),
    ]),
  );
}

test('lateness of a part is its time since the previous part minus the part target', () => {
  const clock = new ManualClock();
  const timeliness = new PartTimeliness(clock);
  const stream = timeliness.open(ADDRESS);
  const part = (afterMs: number, isWatched = true): void => {
    clock.advance(afterMs);
    stream.part(1, TARGET, isWatched);
  };
  part(0);
  part(500);
  part(400);
  part(520);
  part(800);
  // Without viewers no part was awaited; the first part after that has no predecessor.
  part(5000, false);
  part(5000);
  stream.pause(1);
  part(9000);
  expect(figures(timeliness)).toMatchObject({
    parts_total: 8,
    late_parts_total: 1,
    part_lateness_seconds_count: 4,
    'part_lateness_seconds_bucket{le="0.005"}': 2,
    'part_lateness_seconds_bucket{le="0.025"}': 3,
    'part_lateness_seconds_bucket{le="0.25"}': 3,
    'part_lateness_seconds_bucket{le="0.5"}': 4,
  });
});

test('metrics leave out an ended stream, and list a new stream of the same name', () => {
  const timeliness = new PartTimeliness(new ManualClock());
  const before = timeliness.open(ADDRESS);
  before.part(1, TARGET, true);
  const after = timeliness.open(ADDRESS);
  timeliness.close(before);
  expect(metricsText(timeliness)).toContain('millrace_llhls_parts_total{vhost="default",app="app",stream="live"} 0\n');
  timeliness.close(after);
  expect(metricsText(timeliness)).not.toContain('stream="live"');
});
