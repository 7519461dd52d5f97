/** Limits how much work runs at once. */

/** At most `most` calls of work run at once; the others wait in a queue without a limit. */
export class Semaphore {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Runs `work` when there is room, in the order of the calls, and settles as it does. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#most) this.#running += 1;
    else await new Promise<void>((begin) => this.#waiting.push(begin));
    try {
      return await work();
    } finally {
      // The place goes straight to the next in the queue, so that no later caller can take it.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}

/** Half of Node's threads for files, which all of the process share: the others can write while a slow disk syncs. */
const MAX_SYNCS = 2;

/** For all work that waits until bytes are on the disk itself. */
export const syncSemaphore = new Semaphore(MAX_SYNCS);
