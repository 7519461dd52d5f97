/** Counts bytes and computes their rate. */
import type { Clock } from '../util/clock.ts';

const INTERVAL_MS = 1000;
/** Figures are 0 once the current interval is older than this: one to two seconds after the last byte. */
const STALE_MS = 2000;

/** Bytes in one direction with the throughput figures of the statistics API. */
export class ByteMeter {
  total = 0;
  /** Wall clock of the last byte, ms. */
  lastAt: number;
  /** Bytes per second: highest interval seen. */
  #max = 0;
  #last = 0;
  #avg = 0;
  #window = 0;
  #windowStart: number;
  /** Time of the last byte, monotonic ms. */
  #countedAt: number;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.lastAt = clock.now();
    this.#windowStart = clock.monotonic();
    this.#countedAt = this.#windowStart;
  }

  /** `now` and `wall` are both clocks; the caller reads them once to count the same bytes in several meters. */
  add(bytes: number, now = this.#clock.monotonic(), wall = this.#clock.now()): void {
    this.total += bytes;
    this.#window += bytes;
    const elapsed = now - this.#windowStart;
    if (elapsed >= INTERVAL_MS) {
      this.#last = this.#window;
      this.#avg = (this.#window * 1000) / elapsed;
      if (this.#avg > this.#max) this.#max = this.#avg;
      this.#window = 0;
      this.#windowStart = now;
    }
    this.#countedAt = now;
    this.lastAt = wall;
  }

  /** Time since the last byte, or since the beginning, ms, on the monotonic clock. */
  get silence(): number {
    return this.#clock.monotonic() - this.#countedAt;
  }

  /** Bytes counted in the last whole interval. */
  get last(): number {
    return this.#stale ? 0 : this.#last;
  }

  /** Bits per second over the last whole interval. */
  get avg(): number {
    return this.#stale ? 0 : Math.round(this.#avg * 8);
  }

  /** Bits per second, maximum of `avg`. */
  get max(): number {
    return Math.round(this.#max * 8);
  }

  get #stale(): boolean {
    return this.#clock.monotonic() - this.#windowStart > STALE_MS;
  }
}
