/** Dumps, counted for Prometheus. */
import type { MetricDefinition, MetricSource } from '../../../util/metrics.ts';

/** Counts of all dumpers since the start. */
export class DumpCounts {
  segments = 0;
  failures = 0;
}

const METRICS = {
  dumps: { name: 'millrace_dumps', help: 'Running HLS dumps', type: 'gauge' },
  segments: { name: 'millrace_dump_segments_total', help: 'Segments that dumps have written', type: 'counter' },
  failures: {
    name: 'millrace_dump_failures_total',
    help: 'Dumps that ended, or began to miss segments, because files could not be written',
    type: 'counter',
  },
} as const satisfies Record<string, MetricDefinition>;

/** `active` returns the number of running dumps. */
export function dumpMetrics(counts: DumpCounts, active: () => number): MetricSource {
  return {
    definitions: Object.values(METRICS),
    collect(page) {
      page.family(METRICS.dumps).add(active());
      page.family(METRICS.segments).add(counts.segments);
      page.family(METRICS.failures).add(counts.failures);
    },
  };
}
