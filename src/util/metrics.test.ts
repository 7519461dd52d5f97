import { expect, test } from 'vitest';
import { LabelSlots } from './label-slots.ts';
import { Histogram, labelText, type MetricDefinition, MetricsPage } from './metrics.ts';

const SENT: MetricDefinition = { name: 'x_sent_bytes_total', help: 'Bytes sent', type: 'counter' };
const WAIT: MetricDefinition = { name: 'x_wait_seconds', help: 'Waits', type: 'histogram' };

function page(): MetricsPage {
  return new MetricsPage({ streams: new LabelSlots(1), applications: new LabelSlots(1) });
}

test('a page has each metric once with its help, its type and its samples', () => {
  const made = page();
  made.family(SENT).add(3, labelText({ app: 'a"b\\c\nd', way: 'x' }));
  made.family(WAIT);
  made.family(SENT).add(Number.POSITIVE_INFINITY);
  expect(made.text()).toBe(
    '# HELP x_sent_bytes_total Bytes sent\n# TYPE x_sent_bytes_total counter\n' +
      'x_sent_bytes_total{app="a\\"b\\\\c\\nd",way="x"} 3\nx_sent_bytes_total +Inf\n' +
      '# HELP x_wait_seconds Waits\n# TYPE x_wait_seconds histogram\n',
  );
});

test('OpenMetrics names a counter without its ending, and has an end', () => {
  const made = page();
  made.family(SENT).add(3);
  expect(made.text('openmetrics')).toBe('# HELP x_sent_bytes Bytes sent\n# TYPE x_sent_bytes counter\nx_sent_bytes_total 3\n# EOF\n');
});

test('a histogram counts up to each bound, bounds included, and all', () => {
  const waits = new Histogram([0.1, 1]);
  for (const seconds of [0.05, 0.1, 0.5, 7]) waits.observe(seconds);
  const made = page();
  made.family(WAIT).addHistogram(waits, 'app="a"');
  expect(made.text().split('\n').slice(2, -1)).toEqual([
    'x_wait_seconds_bucket{app="a",le="0.1"} 2',
    'x_wait_seconds_bucket{app="a",le="1"} 3',
    'x_wait_seconds_bucket{app="a",le="+Inf"} 4',
    'x_wait_seconds_sum{app="a"} 7.65',
    'x_wait_seconds_count{app="a"} 4',
  ]);
});
