import type { ProviderKind, PublisherKind } from '../core/kinds.ts';

/** Bytes in one direction. */
export interface ByteFigures {
  /** Bytes since creation. */
  readonly total: number;
  /** Wall clock of the last byte, ms since the epoch; the creation time before the first. */
  readonly lastAt: number;
  /** Bytes counted in the last whole measuring interval. */
  readonly last: number;
  /** Bits per second over the last whole measuring interval. */
  readonly avg: number;
  /** Bits per second, maximum of `avg`. */
  readonly max: number;
}

/** Counters of a stream, application, virtual host or the server, as statistics read them. */
export interface TrafficFigures {
  /** Wall clock times, ms since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly in: ByteFigures;
  readonly out: ByteFigures;
  /** Ingest connections now. */
  readonly ingests: Readonly<Record<ProviderKind, number>>;
  /** Viewer sessions now. */
  readonly sessions: Readonly<Record<PublisherKind, number>>;
  readonly totalSessions: number;
  readonly maxTotalSessions: number;
  /** Wall clock of the peak, ms since the epoch. */
  readonly maxTotalSessionsAt: number;
}
