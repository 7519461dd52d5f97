/** Long work of the main thread in slices, between which everything else has its turn. */
import { setImmediate } from 'node:timers/promises';

/** How long the thread is held at once, ms: a frame that waits meanwhile is that much later. */
const SLICE_MS = 3;

/** Goes through all steps, and resolves with what they return. A slice ends with the first step that passes its time. */
export async function inSlices<Result>(steps: Iterable<unknown, Result>): Promise<Result> {
  const iterator = steps[Symbol.iterator]();
  let until = performance.now() + SLICE_MS;
  for (;;) {
    const step = iterator.next();
    if (step.done === true) return step.value;
    if (performance.now() < until) continue;
    await setImmediate();
    until = performance.now() + SLICE_MS;
  }
}

/** The text of all pieces. A slice ends as in `inSlices`. */
export function textInSlices(pieces: Iterable<string>): Promise<string> {
  function* added(): Generator<void, string> {
    let text = '';
    for (const piece of pieces) {
      text += piece;
      yield;
    }
    return text;
  }
  return inSlices(added());
}

/** Goes through all steps without a pause, and returns what they return: for short work, and for threads that do nothing else. */
export function atOnce<Result>(steps: Iterator<unknown, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
