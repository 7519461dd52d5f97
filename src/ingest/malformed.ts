import { ProtocolError } from '../util/protocol-error.ts';

/** What of a source could not be read. */
export interface MalformedCounters {
  malformed: number;
  /** The first fault; null if there was none. */
  firstFault: string | null;
}

/** Counts what a source has sent that cannot be read. Throws `error` again when that is no fault of the source. */
export function countMalformed(counters: MalformedCounters, error: unknown): void {
  if (!(error instanceof ProtocolError)) throw error;
  counters.malformed += 1;
  counters.firstFault ??= `${error.code}: ${error.message}`;
}
