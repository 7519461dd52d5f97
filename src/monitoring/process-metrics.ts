/** Metrics of the process, as the system reports them, and of its main thread. */
import { readdirSync, statSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { descriptorLimit } from '../util/descriptor-plan.ts';
import { labelText, type MetricDefinition, type MetricSource } from '../util/metrics.ts';
import type { EventLoopWatch } from './event-loop-watch.ts';

/** Metrics of the process. */
export interface ProcessFacts {
  readonly version: string;
  readonly revision: string;
  readonly eventLoop: EventLoopWatch;
  /** Reasons for which the server is degraded. */
  readonly conditions: { readonly reasons: readonly string[] };
  readonly logDropped: () => number;
}

const DESCRIPTORS = '/proc/self/fd';
const US = 1e-6;

const counter = (name: string, help: string): MetricDefinition => ({ name, help, type: 'counter' });
const gauge = (name: string, help: string): MetricDefinition => ({ name, help, type: 'gauge' });

/** Names without prefix are the usual names of all programs. */
const METRICS = {
  cpu: counter('process_cpu_seconds_total', 'CPU time of all threads of the server, without transcoder processes'),
  resident: gauge('process_resident_memory_bytes', 'Memory of the server in use'),
  start: gauge('process_start_time_seconds', 'When the process started, seconds since the epoch of Unix'),
  open: gauge('process_open_fds', 'File descriptors in use'),
  most: gauge('process_max_fds', 'File descriptors that the process may have'),
  build: gauge('millrace_build_info', 'Always 1; the labels tell what runs'),
  uptime: gauge('millrace_uptime_seconds', 'Time since the process started'),
  mode: counter('millrace_cpu_seconds_total', 'CPU time of all threads of the server, by mode'),
  mainThread: counter('millrace_main_thread_cpu_seconds_total', 'CPU time of the main thread'),
  heapUsed: gauge('millrace_heap_used_bytes', 'Heap of the main thread in use'),
  heapSize: gauge('millrace_heap_size_bytes', 'Heap of the main thread'),
  external: gauge('millrace_external_memory_bytes', 'Memory outside of the heap that JavaScript objects hold, buffers included'),
  loopDelay: {
    name: 'millrace_event_loop_delay_seconds',
    help: 'Delay of a timer of the main thread that is due ten times a second on average, at random moments, since the first request of metrics',
    type: 'histogram',
  },
  loopActive: counter('millrace_event_loop_active_seconds_total', 'Time in which the event loop of the main thread was active'),
  conditions: gauge('millrace_degraded_reasons', 'Number of problems that /health reports; 0: none'),
  logLost: gauge('millrace_log_lost_lines', 'Lines of the log that could not be written, and that the log has not reported yet'),
} as const satisfies Record<string, MetricDefinition>;

/** Metrics of the calling process. */
export function processMetrics({ version, revision, eventLoop, conditions, logDropped }: ProcessFacts): MetricSource {
  const build = labelText({ version, revision, node: process.version });
  const started = Date.now() / 1000 - process.uptime();
  const most = descriptorLimit()?.limit ?? null;
  return {
    definitions: Object.values(METRICS),
    collect(page) {
      eventLoop.start();
      const { user, system } = process.cpuUsage();
      const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
      const tell = (metric: MetricDefinition, value: number, labels?: string): void => page.family(metric).add(value, labels);
      tell(METRICS.cpu, (user + system) * US);
      tell(METRICS.resident, rss);
      tell(METRICS.start, started);
      const open = openDescriptors();
      if (open !== null) tell(METRICS.open, open);
      if (most !== null) tell(METRICS.most, most);
      tell(METRICS.build, 1, build);
      tell(METRICS.uptime, process.uptime());
      tell(METRICS.mode, user * US, 'mode="user"');
      tell(METRICS.mode, system * US, 'mode="system"');
      const thread = process.threadCpuUsage?.();
      if (thread !== undefined) tell(METRICS.mainThread, (thread.user + thread.system) * US);
      tell(METRICS.heapUsed, heapUsed);
      tell(METRICS.heapSize, heapTotal);
      tell(METRICS.external, external);
      page.family(METRICS.loopDelay).addHistogram(eventLoop.delays);
      tell(METRICS.loopActive, performance.eventLoopUtilization().active / 1000);
      tell(METRICS.conditions, conditions.reasons.length);
      tell(METRICS.logLost, logDropped());
    },
  };
}

/** Null if the system does not report them. */
function openDescriptors(): number | null {
  try {
    // Kernels from 6.2 on report the number without a list.
    return statSync(DESCRIPTORS).size || readdirSync(DESCRIPTORS).length;
  } catch {
    return null;
  }
}
