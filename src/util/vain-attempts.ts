import type { Clock } from './clock.ts';

const FIRST_MS = 2000;
const MAX_WAIT_MS = 60_000;
const MAX_KEPT = 1000;

interface Vain {
  readonly reason: string;
  readonly waits: number;
  /** Monotonic, ms. */
  readonly until: number;
}

/**
 * What was tried in vain and costs too much to be tried all the time, by keys that change when the thing does: it is left alone for two seconds,
 * and for twice as long after every try, up to a minute. The last 1000 of them are remembered. Needs no closing.
 */
export class VainAttempts {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #vain = new Map<string, Vain>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Why it is not to be tried now; null: it may be. */
  reasonOf(key: string): string | null {
    const vain = this.#vain.get(key);
    return vain !== undefined && this.#clock.monotonic() < vain.until ? vain.reason : null;
  }

  /** It was tried in vain. */
  failed(key: string, reason: string): void {
    const before = this.#vain.get(key);
    const waits = before === undefined ? FIRST_MS : Math.min(before.waits * 2, MAX_WAIT_MS);
    this.#vain.delete(key);
    this.#vain.set(key, { reason, waits, until: this.#clock.monotonic() + waits });
    const [oldest] = this.#vain.keys();
    if (this.#vain.size > MAX_KEPT && oldest !== undefined) this.#vain.delete(oldest);
  }

  /** It was not in vain this time. */
  succeeded(key: string): void {
    this.#vain.delete(key);
  }
}
