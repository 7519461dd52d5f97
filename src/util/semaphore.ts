/** Bounds how much work goes on at once. */

/** `most` may work at once; all others wait in line, of which there is no limit. */
export class Semaphore {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Runs `work` as soon as there is room for it, in the order of the calls, and settles as it does. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#most) this.#running += 1;
    else await new Promise<void>((begin) => this.#waiting.push(begin));
    try {
      return await work();
    } finally {
      // The place goes to the next in line, so that nobody gets between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}

/** Half of the threads that Node has for files, one pool for the process: the others write while a slow disk syncs. */
const MAX_SYNCS = 2;

/** For everything that waits until bytes are on the disk itself. */
export const syncSemaphore = new Semaphore(MAX_SYNCS);
