/** The running parts of the server, and their stop. */
import type { LogLines } from '../util/logger.ts';

/** Parts that have not stopped by then are left, ms; the process has to end within 5 s. */
const STOP_DEADLINE_MS = 3500;

/** Something that was started and must be stopped. */
export interface Running {
  /** Everything that can be done synchronously is done when this returns. */
  stop(): Promise<void>;
  /** Stopped after all others, because it stores their data or reports the stop. */
  readonly keeps?: boolean;
  /** Stopped last: it holds what all the others use. */
  readonly last?: boolean;
}

/**
 * Stops everything in three turns, within each the last started first and all at the same time: a slow receiver takes no time from a file that
 * is being finished. A failure is logged. Resolves after 3.5 s at the latest. Empties `running`.
 */
export async function stopAll(running: Running[], logger: LogLines): Promise<void> {
  const parts = running.splice(0).reverse();
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const deadline = setTimeout(resolve, STOP_DEADLINE_MS);
  for (const turn of [0, 1, 2]) {
    await stopTogether(
      parts.filter((part) => turnOf(part) === turn),
      late,
      logger,
    );
  }
  clearTimeout(deadline);
}

function turnOf({ keeps = false, last = false }: Running): number {
  if (last) return 2;
  return keeps ? 1 : 0;
}

async function stopTogether(parts: readonly Running[], late: Promise<void>, logger: LogLines): Promise<void> {
  let left = parts.length;
  const stops = parts.map(async (part) => {
    try {
      await part.stop();
    } catch (error) {
      logger.error({ err: error }, 'a part of the server failed while it stopped');
    }
    left -= 1;
  });
  await Promise.race([Promise.all(stops), late]);
  if (left > 0) logger.warn({ parts: left }, 'the server exits: some of its parts have not stopped in time');
}
