/** How late the event loop of the main thread reacts. */
import type { Clock } from '../util/clock.ts';
import { Histogram } from '../util/metrics.ts';

/**
 * Mean time between two checks: each wakes the thread, and fifty per second took a third of the CPU time of a server with one stream. A
 * steady timer falls into step with the other timers of the server, because all that become due during a halt run together after it. It
 * would then run before their work each time and never see it.
 */
const INTERVAL_MS = 100;
const SPREAD_MS = 50;
/** Longer delays are counted as this delay. */
const MAX_DELAY_MS = 10_000;
/** Includes 20 ms, the threshold of an alert. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Checks some ten times a second at random moments, from the first `start` on. Its starter stops it. */
export class EventLoopWatch {
  /** Delays, seconds. */
  readonly delays = new Histogram(BOUNDS);
  readonly #clock: Clock;
  readonly #random: () => number;
  #timer: NodeJS.Timeout | null = null;
  #due = 0;

  /** `random`: from 0 to 1, for tests. */
  constructor(clock: Clock, random = Math.random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Idempotent. */
  start(): void {
    if (this.#timer === null) this.#wait(this.#clock.monotonic());
  }

  /** Called by the timer. Checks that were due during a long halt count as late, too, so that the halt is more than one small figure. */
  look(): void {
    const now = this.#clock.monotonic();
    for (let late = Math.min(now - this.#due, MAX_DELAY_MS); late > 0; late -= INTERVAL_MS) this.delays.observe(late / 1000);
    if (now <= this.#due) this.delays.observe(0);
    if (this.#timer !== null) this.#wait(now);
  }

  /** Idempotent. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #wait(now: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    const time = Math.round(INTERVAL_MS + SPREAD_MS * (2 * this.#random() - 1));
    this.#due = now + time;
    this.#timer = setTimeout(() => this.look(), time).unref();
  }
}
