import type { Clock } from './clock.ts';

const FIRST_MS = 2000;
const MAX_WAIT_MS = 60_000;
const MAX_KEPT = 1000;

interface Failure {
  readonly reason: string;
  readonly waits: number;
  /** Monotonic, ms. */
  readonly until: number;
}

/**
 * Backoff for expensive operations, by key; a changed subject needs another key. After a failure the operation is not tried for two
 * seconds, which doubles up to a minute. Remembers the last 1000 failures. Needs no closing.
 */
export class FailedAttempts {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #failures = new Map<string, Failure>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Reason of the last failure while its backoff lasts; null: the operation may be tried. */
  reasonOf(key: string): string | null {
    const failures = this.#failures.get(key);
    return failures !== undefined && this.#clock.monotonic() < failures.until ? failures.reason : null;
  }

  /** The operation failed. */
  failed(key: string, reason: string): void {
    const before = this.#failures.get(key);
    const waits = before === undefined ? FIRST_MS : Math.min(before.waits * 2, MAX_WAIT_MS);
    this.#failures.delete(key);
    this.#failures.set(key, { reason, waits, until: this.#clock.monotonic() + waits });
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > MAX_KEPT && oldest !== undefined) this.#failures.delete(oldest);
  }

  /** The operation succeeded. */
  succeeded(key: string): void {
    this.#failures.delete(key);
  }
}
