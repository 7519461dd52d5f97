/** The running parts of the server, and their stop. */
import type { LogLines } from '../util/logger.ts';

/** Parts that have not stopped by then are left, ms; the process has to end within 5 s. */
const STOP_DEADLINE_MS = 3500;

/** Something that was started and must be stopped. */
export interface Running {
  /** Everything that can be done synchronously is done when this returns. */
  stop(): Promise<void>;
  /** Stopped when all others are: it keeps what they write, or tells of the stop. */
  readonly keeps?: boolean;
}

/**
 * Stops everything. Last started is told first, and nobody waits for another one: a receiver that is slow takes no time from the file that
 * is being finished. One that fails is told in the log. Resolves after 3.5 s at the latest. Empties `running`.
 */
export async function stopAll(running: Running[], logger: LogLines): Promise<void> {
  const parts = running.splice(0).reverse();
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const deadline = setTimeout(resolve, STOP_DEADLINE_MS);
  await stopTogether(
    parts.filter(({ keeps }) => keeps !== true),
    late,
    logger,
  );
  await stopTogether(
    parts.filter(({ keeps }) => keeps === true),
    late,
    logger,
  );
  clearTimeout(deadline);
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
  if (left > 0) logger.warn({ parts: left }, 'the server ends before all of it has stopped');
}
