import { ProtocolError } from '../util/protocol-error.ts';

/** The unreadable parts of a source. */
export interface MalformedCounters {
  malformed: number;
  /** The first fault; null if there was none. */
  firstFault: string | null;
}

/** Counts unreadable data of a source. Throws `error` again if it is no fault of the source. */
export function countMalformed(counters: MalformedCounters, error: unknown): void {
  if (!(error instanceof ProtocolError)) throw error;
  counters.malformed += 1;
  counters.firstFault ??= `${error.code}: ${error.message}`;
}
