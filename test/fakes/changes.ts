/** Waits for calls that a fake receives. */

/** Runs its waiters again after every change. */
export class Changes {
  readonly #waiters = new Set<() => void>();

  notify(): void {
    for (const waiter of [...this.#waiters]) waiter();
  }

  /** Resolves when `predicate` holds; the test's own timeout is the deadline. */
  until(predicate: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!predicate()) return;
        this.#waiters.delete(check);
        resolve();
      };
      this.#waiters.add(check);
      check();
    });
  }
}
