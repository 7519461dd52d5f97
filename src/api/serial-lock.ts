/** Runs asynchronous jobs one after the other, in the order they came. */
export class SerialLock {
  #last: Promise<unknown> = Promise.resolve();

  /** Starts `job` when all earlier ones have settled; settles as `job` does. */
  run<T>(job: () => Promise<T> | T): Promise<T> {
    const result = this.#last.then(job);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
