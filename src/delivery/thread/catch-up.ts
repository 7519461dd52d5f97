/** Whether a delivery thread is up to date: an idle one gets updates in batches and must catch up before it answers. */

/** A thread rests after this many reports without a connection. */
const QUIET_REPORTS = 4;

/** One for each thread. It rests after a few reports without connections; the next request waits for `caughtUp`. */
export class CatchUp {
  readonly #post: (wanted: boolean) => void;
  readonly #callers = new Set<() => void>();
  #current = true;
  #quiet = 0;
  #opened = 0;

  /** `post(true)` asks the main thread for all updates at once, `post(false)` for batches. */
  constructor(post: (wanted: boolean) => void) {
    this.#post = post;
  }

  /** The state of this thread is up to date. */
  get current(): boolean {
    return this.#current;
  }

  /** Checks for activity: `connections` open now, `opened` since the thread started. */
  look(connections: number, opened: number): void {
    this.#quiet = connections === 0 && opened === this.#opened ? this.#quiet + 1 : 0;
    this.#opened = opened;
    if (!this.#current || this.#quiet < QUIET_REPORTS) return;
    this.#current = false;
    this.#post(false);
  }

  /** Calls `callback` as soon as all updates up to now have arrived; the returned function cancels the call. */
  wait(callback: () => void): () => void {
    if (this.#callers.size === 0) this.#post(true);
    this.#callers.add(callback);
    return () => this.#callers.delete(callback);
  }

  /** The main thread has sent all updates. */
  caughtUp(): void {
    this.#current = true;
    this.#quiet = 0;
    const callers = [...this.#callers];
    this.#callers.clear();
    for (const callback of callers) callback();
  }
}
