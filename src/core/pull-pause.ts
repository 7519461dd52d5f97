/** How long a pulled stream waits between two tries that bring nothing. */
import { scatteredPause } from '../util/growing-pause.ts';

const FIRST_MS = 500;
/** No pause is longer. */
const MAX_MS = 30_000;

/**
 * Milliseconds to wait after `failures` in a row. For a persistent stream they double with every round over its URLs. `random` is 0 to 1.
 */
export function pullPause(failures: number, { urls, persistent }: { urls: number; persistent: boolean }, random: number): number {
  return scatteredPause(persistent ? Math.floor((failures - 1) / urls) : 0, FIRST_MS, MAX_MS, random);
}
