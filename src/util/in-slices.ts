/** Long work of the main thread in slices, between which everything else has its turn. */
import { setImmediate } from 'node:timers/promises';

/** How long the thread is held at once, ms: a frame that waits meanwhile is that much later. */
const SLICE_MS = 3;

/** Goes through all steps. A slice ends with the first step that passes its time. */
export async function inSlices(steps: Iterable<unknown>): Promise<void> {
  let until = performance.now() + SLICE_MS;
  for (const _step of steps) {
    if (performance.now() < until) continue;
    await setImmediate();
    until = performance.now() + SLICE_MS;
  }
}
