/** Figures of the threads of `DeliveryPool` and of their work. */
import type { ThreadReport } from '../thread-protocol.ts';
import type { SharedArena } from './shared-arena.ts';

/** Figures of the pool. */
export interface DeliveryStatus {
  readonly threads: readonly {
    readonly thread: number;
    readonly report: ThreadReport | null;
    /** The thread has no viewers and gets media updates in batches. */
    readonly resting: boolean;
  }[];
  readonly restarts: number;
  readonly feeds: number;
  readonly sessions: number;
  readonly memory: SharedArena['usage'];
}
