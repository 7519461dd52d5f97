/** How late the event loop of the main thread reacts. */
import type { Clock } from '../util/clock.ts';
import { Histogram } from '../util/metrics.ts';

/** Each check wakes the thread: fifty per second took a third of the CPU time of a server with one stream. */
const INTERVAL_MS = 100;
/** Longer delays are counted as this delay. */
const MAX_DELAY_MS = 10_000;
/** Includes 20 ms, the threshold of an alert. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Checks ten times a second, from the first `start` on. Its starter stops it. */
export class EventLoopWatch {
  /** Delays, seconds. */
  readonly delays = new Histogram(BOUNDS);
  readonly #clock: Clock;
  #timer: NodeJS.Timeout | null = null;
  #due = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Idempotent. */
  start(): void {
    if (this.#timer !== null) return;
    this.#due = this.#clock.monotonic() + INTERVAL_MS;
    this.#timer = setInterval(() => this.look(), INTERVAL_MS).unref();
  }

  /** Called by the timer. Checks that were due during a long halt count as late, too, so that the halt is more than one small figure. */
  look(): void {
    const now = this.#clock.monotonic();
    for (let late = Math.min(now - this.#due, MAX_DELAY_MS); late > 0; late -= INTERVAL_MS) this.delays.observe(late / 1000);
    if (now <= this.#due) this.delays.observe(0);
    this.#due = now + INTERVAL_MS;
  }

  /** Idempotent. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
