/** Pushes, counted for Prometheus. */
import { counterMetrics, taskMetrics } from '../../core/tasks/task-metrics.ts';
import type { MetricSource } from '../../util/metrics.ts';

/** Counters since the start. */
export class PushCounts {
  /** Receivers that took media. */
  connections = 0;
  bytes = 0;
  failures = 0;
  /** Packets for which receivers were too slow, of ended connections. */
  dropped = 0;
}

/** `tasks`: the listed tasks. */
export function pushMetrics(counts: PushCounts, tasks: () => Iterable<{ readonly state: string }>): readonly MetricSource[] {
  const states = ['ready', 'connecting', 'pushing', 'stopping', 'error'];
  return [
    taskMetrics({ name: 'pushes', what: 'Push tasks', states }, tasks),
    counterMetrics(counts, [
      ['connections', 'push_connections_total', 'Connections to receivers that took media'],
      ['bytes', 'push_sent_bytes_total', 'Bytes sent to receivers of pushes'],
      ['failures', 'push_failures_total', 'Failures of pushes: the receiver was not reached, was lost, or cannot take the stream'],
      [
        'dropped',
        'push_dropped_packets_total',
        'Packets dropped because the receiver of a push was too slow, counted when its connection ends',
      ],
    ]),
  ];
}
