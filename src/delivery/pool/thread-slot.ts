/** The place of one delivery thread. */
import type { QueueGauge } from '../../util/queue-gauge.ts';
import type { ThreadReport } from '../thread-protocol.ts';
import type { BatchingLink } from './batching-link.ts';

/** Outlives its threads: one that dies is followed by another in the same place. */
export interface ThreadSlot {
  /** Number of the running thread, which is also its incarnation; 0 when none runs. */
  thread: number;
  link: BatchingLink | null;
  gauge: QueueGauge | null;
  startedAt: number;
  failures: number;
  restart: NodeJS.Timeout | null;
  report: ThreadReport | null;
}

/** A place in which no thread has run yet. */
export function emptySlot(): ThreadSlot {
  return { thread: 0, link: null, gauge: null, startedAt: 0, failures: 0, restart: null, report: null };
}
