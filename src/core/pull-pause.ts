/** How long a pulled stream waits between two tries that bring nothing. */

const FIRST_MS = 500;
/** No pause is longer. */
const MAX_MS = 30_000;
/** Doublings after which the limit is reached anyway. */
const MAX_DOUBLINGS = 8;
/** Streams that lost one origin together must not reconnect together. */
const JITTER = 0.2;

/**
 * Milliseconds to wait after `failures` in a row. For a persistent stream they double with every round over its URLs. `random` is 0 to 1.
 */
export function pullPause(failures: number, { urls, persistent }: { urls: number; persistent: boolean }, random: number): number {
  const doublings = persistent ? Math.min(Math.floor((failures - 1) / urls), MAX_DOUBLINGS) : 0;
  return Math.min(MAX_MS, FIRST_MS * 2 ** doublings) * (1 - JITTER + JITTER * random);
}
