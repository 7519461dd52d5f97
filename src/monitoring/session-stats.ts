import { formatTimestamp } from '../util/timestamp.ts';
import type { ByteFigures } from './traffic-figures.ts';

/** The properties of a viewer session that statistics read. */
export interface SessionFigures {
  /** Wall clock, ms since the epoch. */
  readonly createdAt: number;
  readonly out: ByteFigures;
}

/** Statistics of a session, in the units of version 1 of those of streams. Members in byte order. */
export interface SessionStatistics {
  readonly avgThroughputOut: number;
  readonly createdTime: string;
  readonly lastSentTime: string;
  readonly lastThroughputOut: number;
  readonly lastUpdatedTime: string;
  readonly maxThroughputOut: number;
  readonly totalBytesOut: number;
}

/** Serialises the counters of a session. */
export function sessionStatistics({ createdAt, out }: SessionFigures): SessionStatistics {
  const lastSentTime = formatTimestamp(out.lastAt);
  return {
    avgThroughputOut: out.avg,
    createdTime: formatTimestamp(createdAt),
    lastSentTime,
    lastThroughputOut: out.last,
    // Only the sent bytes of a session change.
    lastUpdatedTime: lastSentTime,
    maxThroughputOut: out.max,
    totalBytesOut: out.total,
  };
}
