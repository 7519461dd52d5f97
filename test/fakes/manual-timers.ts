/** Timers on a manual clock: a day passes as fast as its work is done. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ManualClock } from './manual-clock.ts';

interface Waiting {
  readonly at: number;
  readonly action: () => void;
}

export class ManualTimers {
  readonly #clock: ManualClock;
  readonly #rest: () => Promise<unknown>;
  readonly #waiting = new Set<Waiting>();

  /** `rest` resolves when no work is left that must be done before time advances. */
  constructor(clock: ManualClock, rest: () => Promise<unknown> = nextTurn) {
    this.#clock = clock;
    this.#rest = rest;
  }

  readonly later = (action: () => void, ms: number): (() => void) => {
    const waiting = { at: this.#clock.monotonic() + Math.max(0, ms), action };
    this.#waiting.add(waiting);
    return () => this.#waiting.delete(waiting);
  };

  /** Lets `ms` pass; asynchronous work runs before each timer. */
  async pass(ms: number): Promise<void> {
    const end = this.#clock.monotonic() + ms;
    for (;;) {
      await this.#rest();
      const next = this.#next(end);
      if (next === null) break;
      this.#waiting.delete(next);
      this.#clock.advance(Math.max(0, next.at - this.#clock.monotonic()));
      next.action();
    }
    this.#clock.advance(end - this.#clock.monotonic());
  }

  #next(end: number): Waiting | null {
    let first: Waiting | null = null;
    for (const waiting of this.#waiting) if (waiting.at <= end && (first === null || waiting.at < first.at)) first = waiting;
    return first;
  }
}
