/** Metrics of the transcoder, for Prometheus. */
import type { MetricDefinition, MetricSource } from '../util/metrics.ts';

/** Counters since the start. */
export class TranscoderCounts {
  /** Packets of tracks with encodes. */
  received = 0;
  /** Encoded packets by media type. */
  readonly encoded = { video: 0, audio: 0, image: 0 };
  /** Processes that died. */
  deaths = 0;
  /** Jobs that hung in a process which went on with others. */
  hung = 0;
  /** Encodes that could not be made. */
  failures = 0;
  /** Jobs for which there was no process. */
  refused = 0;
}

/** Present processes and jobs. */
export interface TranscoderLoad {
  readonly processes: number;
  readonly maxProcesses: number;
  readonly jobs: number;
}

const METRICS = {
  processes: {
    name: 'millrace_transcoder_processes',
    help: 'Running transcoder processes, with those that read files',
    type: 'gauge',
  },
  most: { name: 'millrace_transcoder_processes_limit', help: 'Transcoder processes that may run at once', type: 'gauge' },
  jobs: { name: 'millrace_transcoder_jobs', help: 'Streams with encodes', type: 'gauge' },
  received: {
    name: 'millrace_transcoder_received_packets_total',
    help: 'Packets from sources for encodes, with those that queues drop',
    type: 'counter',
  },
  encoded: {
    name: 'millrace_transcoder_encoded_packets_total',
    help: 'Packets that encoders made: video frames, audio frames, images',
    type: 'counter',
  },
  deaths: {
    name: 'millrace_transcoder_process_deaths_total',
    help: 'Transcoder processes that died or were killed for hanging',
    type: 'counter',
  },
  hung: {
    name: 'millrace_transcoder_jobs_hung_total',
    help: 'Jobs that hung in a transcoder process that continued with other jobs',
    type: 'counter',
  },
  failures: { name: 'millrace_transcoder_encode_failures_total', help: 'Failures of encodes', type: 'counter' },
  refused: {
    name: 'millrace_transcoder_jobs_refused_total',
    help: 'Streams that got no transcoder process because all were taken',
    type: 'counter',
  },
} as const satisfies Record<string, MetricDefinition>;

/** Metrics of the transcoder. Drops of its queues are in `millrace_queue_dropped_total`. */
export function transcoderMetrics(counts: TranscoderCounts, load: () => TranscoderLoad): MetricSource {
  return {
    definitions: Object.values(METRICS),
    collect(page) {
      const { processes, maxProcesses, jobs } = load();
      page.family(METRICS.processes).add(processes);
      page.family(METRICS.most).add(maxProcesses);
      page.family(METRICS.jobs).add(jobs);
      page.family(METRICS.received).add(counts.received);
      for (const [type, count] of Object.entries(counts.encoded)) page.family(METRICS.encoded).add(count, `type="${type}"`);
      page.family(METRICS.deaths).add(counts.deaths);
      page.family(METRICS.hung).add(counts.hung);
      page.family(METRICS.failures).add(counts.failures);
      page.family(METRICS.refused).add(counts.refused);
    },
  };
}
