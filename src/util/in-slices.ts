/** Long work of the main thread in slices, between which everything else has its turn. */
import { setImmediate } from 'node:timers/promises';

/** How long the thread is held at once, ms: a frame that waits meanwhile is that much later. */
const SLICE_MS = 3;

/** Goes through all steps, and resolves with what they return. A slice ends with the first step that passes its time. */
export async function inSlices<Result>(steps: Iterable<unknown, Result>): Promise<Result> {
  return await inSlicesIfLong(steps[Symbol.iterator]());
}

/** Like `inSlices`. The first slice is gone through at once, and what the steps return is returned if they end in it. */
export function inSlicesIfLong<Result>(steps: Iterator<unknown, Result>): Result | Promise<Result> {
  const end = performance.now() + SLICE_MS;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() >= end) return setImmediate().then(() => inSlicesIfLong(steps));
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
