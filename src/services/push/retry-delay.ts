/** How long a task waits before it calls its receiver again. */
const FIRST_MS = 1000;
const MAX_MS = 15_000;
/** Tasks that lost one receiver together must not come back together. */
const JITTER = 0.2;

/** Milliseconds before the next attempt after `failures` in a row; `random` is 0 to 1. */
export function retryDelay(failures: number, random: number): number {
  const delay = Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10));
  return Math.round(delay * (1 - JITTER + 2 * JITTER * random));
}
