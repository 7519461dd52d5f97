import type { QueueStatus } from '../util/queue-gauge.ts';

/** States of queues as `/v2/internals/queues` has them, by id. */
export function queueStatuses(statuses: Iterable<QueueStatus>): QueueStatus[] {
  return Array.from(statuses, queueStatus).sort((a, b) => a.id - b.id);
}

/** The state of one queue, with its members in byte order. */
export function queueStatus(status: QueueStatus): QueueStatus {
  return {
    avgWaitingTime: status.avgWaitingTime,
    drop: status.drop,
    id: status.id,
    inputPerSecond: status.inputPerSecond,
    outputPerSecond: status.outputPerSecond,
    peak: status.peak,
    size: status.size,
    threshold: status.threshold,
    type: status.type,
    urn: status.urn,
  };
}
