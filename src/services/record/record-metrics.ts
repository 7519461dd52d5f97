/** Recordings, counted for Prometheus. */
import { counterMetrics, taskMetrics } from '../../core/tasks/task-metrics.ts';
import type { MetricSource } from '../../util/metrics.ts';

/** Counted from the start on. */
export class RecordCounts {
  /** Files that have their names. */
  files = 0;
  bytes = 0;
  failures = 0;
}

/** `tasks`: those that are listed. */
export function recordMetrics(counts: RecordCounts, tasks: () => Iterable<{ readonly state: string }>): readonly MetricSource[] {
  const states = ['ready', 'recording', 'stopping', 'error'];
  return [
    taskMetrics({ name: 'recordings', what: 'Recording tasks', states }, tasks),
    counterMetrics(counts, [
      ['files', 'recorded_files_total', 'Recorded files that were finished'],
      ['bytes', 'recorded_bytes_total', 'Bytes written into recorded files'],
      ['failures', 'recording_failures_total', 'How often a recording failed'],
    ]),
  ];
}
