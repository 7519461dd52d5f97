/** Waiting with a deadline. */
import { setTimeout as delay } from 'node:timers/promises';

const DEFAULT_DEADLINE_MS = 30_000;
const DEFAULT_EVERY_MS = 50;

export interface PollOptions {
  readonly deadlineMs?: number;
  readonly everyMs?: number;
  /** True for an error of `probe` after which waiting is pointless. */
  readonly giveUp?: (error: unknown) => boolean;
}

/**
 * Calls `probe` until it returns something other than undefined, null or false, and returns that. Throws naming `what` and the last answer
 * or error when the deadline passes.
 */
export async function until<T>(what: string, probe: () => T | Promise<T>, options: PollOptions = {}): Promise<NonNullable<T>> {
  const deadlineMs = options.deadlineMs ?? DEFAULT_DEADLINE_MS;
  const end = performance.now() + deadlineMs;
  let last: unknown;
  for (;;) {
    try {
      const answer = await probe();
      if (answer !== undefined && answer !== null && answer !== false) return answer;
      last = answer;
    } catch (error) {
      if (options.giveUp?.(error) === true) throw error;
      last = error;
    }
    if (performance.now() >= end) throw new Error(`not within ${deadlineMs} ms: ${what} (last: ${String(last)})`);
    await delay(options.everyMs ?? DEFAULT_EVERY_MS);
  }
}

/** Rejects if `promise` has not settled in time. */
export async function within<T>(what: string, deadlineMs: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${deadlineMs} ms: ${what}`)), deadlineMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
