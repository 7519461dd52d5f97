/** Recordings, counted for Prometheus. */
import { counterMetrics, taskMetrics } from '../../core/tasks/task-metrics.ts';
import type { MetricDefinition, MetricSource } from '../../util/metrics.ts';
import type { RecordingLibrary } from './recording-library.ts';

/** Counters since the start. */
export class RecordCounts {
  /** Files that have their names. */
  files = 0;
  bytes = 0;
  failures = 0;
}

const KEPT = {
  files: { name: 'millrace_kept_recordings', help: 'Recorded files that can be watched', type: 'gauge' },
  bytes: { name: 'millrace_kept_recordings_bytes', help: 'Bytes of recorded files that can be watched', type: 'gauge' },
  removed: { name: 'millrace_recordings_removed_total', help: 'Recorded files that retention removed, by reason', type: 'counter' },
  failures: { name: 'millrace_recording_removal_failures_total', help: 'Recorded files that retention could not remove', type: 'counter' },
} as const satisfies Record<string, MetricDefinition>;

function keptMetrics(library: Pick<RecordingLibrary, 'holdings' | 'counts'>): MetricSource {
  return {
    definitions: Object.values(KEPT),
    collect(page) {
      const { files, bytes } = library.holdings;
      const { removedForAge, removedForSize, removalFailures } = library.counts;
      page.family(KEPT.files).add(files);
      page.family(KEPT.bytes).add(bytes);
      page.family(KEPT.removed).add(removedForAge, 'reason="age"');
      page.family(KEPT.removed).add(removedForSize, 'reason="size"');
      page.family(KEPT.failures).add(removalFailures);
    },
  };
}

/** `tasks`: the listed tasks. */
export function recordMetrics(
  counts: RecordCounts,
  tasks: () => Iterable<{ readonly state: string }>,
  library: Pick<RecordingLibrary, 'holdings' | 'counts'>,
): readonly MetricSource[] {
  const states = ['ready', 'recording', 'stopping', 'error'];
  return [
    taskMetrics({ name: 'recordings', what: 'Recording tasks', states }, tasks),
    counterMetrics(counts, [
      ['files', 'recorded_files_total', 'Recorded files that were finished'],
      ['bytes', 'recorded_bytes_total', 'Bytes written into recorded files'],
      ['failures', 'recording_failures_total', 'Failures of recordings'],
    ]),
    keptMetrics(library),
  ];
}
