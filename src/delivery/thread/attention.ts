/** Whether a delivery thread is up to date: one that nobody asks is told what happens in bundles, and must ask before it answers. */

/** Reports without a connection after which a thread asks to be left alone. */
const QUIET_REPORTS = 4;

/** One for each thread. A few reports without anybody make it quiet; the first request after that waits for `caughtUp`. */
export class Attention {
  readonly #post: (wanted: boolean) => void;
  readonly #callers = new Set<() => void>();
  #current = true;
  #quiet = 0;
  #opened = 0;

  /** `post` tells the main thread whether this one wants to hear of everything at once. */
  constructor(post: (wanted: boolean) => void) {
    this.#post = post;
  }

  /** What this thread knows is what there is. */
  get current(): boolean {
    return this.#current;
  }

  /** Looks whether anybody is there: `connections` open now, `opened` since the thread started. */
  look(connections: number, opened: number): void {
    this.#quiet = connections === 0 && opened === this.#opened ? this.#quiet + 1 : 0;
    this.#opened = opened;
    if (!this.#current || this.#quiet < QUIET_REPORTS) return;
    this.#current = false;
    this.#post(false);
  }

  /** Calls `callback` as soon as everything is known that happened up to now; the returned function takes that back. */
  wait(callback: () => void): () => void {
    if (this.#callers.size === 0) this.#post(true);
    this.#callers.add(callback);
    return () => this.#callers.delete(callback);
  }

  /** The main thread has told everything. */
  caughtUp(): void {
    this.#current = true;
    this.#quiet = 0;
    const callers = [...this.#callers];
    this.#callers.clear();
    for (const callback of callers) callback();
  }
}
