/** The place of one delivery thread. */
import type { QueueGauge } from '../../util/queue-gauge.ts';
import type { ThreadReport } from '../thread-protocol.ts';
import type { BatchingLink } from './batching-link.ts';

/** Outlives its threads: a thread that dies is replaced in the same slot. */
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

/** A slot without a thread so far. */
export function emptySlot(): ThreadSlot {
  return { thread: 0, link: null, gauge: null, startedAt: 0, failures: 0, restart: null, report: null };
}
