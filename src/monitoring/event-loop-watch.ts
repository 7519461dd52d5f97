/** How late the event loop of the main thread comes to what is due. */
import type { Clock } from '../util/clock.ts';
import { Histogram } from '../util/metrics.ts';

/** Each look wakes the thread: fifty a second were a third of what a server with one stream cost. */
const INTERVAL_MS = 100;
/** Longer delays are counted as this one. */
const MAX_DELAY_MS = 10_000;
/** 20 ms is where an alert begins. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Looks ten times a second, from the first `start` on. Its starter stops it. */
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

  /** The timer has come. All that was due meanwhile was late, too: one long halt is not one small figure among many. */
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
