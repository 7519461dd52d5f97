/** Round trip time, smoothed by draft-sharabayko-srt-01 §4.10. All times in µs. */

const INITIAL_RTT = 100_000;
const INITIAL_VARIANCE = 50_000;

/** One for each connection. Before the first measurement it returns the initial value of the specification. */
export class RttEstimator {
  #rtt = INITIAL_RTT;
  #variance = INITIAL_VARIANCE;
  #measured = false;

  get rtt(): number {
    return this.#rtt;
  }

  get variance(): number {
    return this.#variance;
  }

  /** A likely upper bound of the round-trip time. */
  get upperBound(): number {
    return this.#rtt + 4 * this.#variance;
  }

  /** Takes one measurement. */
  measure(sample: number): void {
    if (!this.#measured) {
      this.#measured = true;
      this.#rtt = sample;
      this.#variance = sample / 2;
      return;
    }
    this.#variance += (Math.abs(sample - this.#rtt) - this.#variance) / 4;
    this.#rtt += (sample - this.#rtt) / 8;
  }

  /** Takes the peer's measurement, for a side that only sends. */
  adopt(rtt: number, variance: number): void {
    if (this.#measured) return;
    this.#rtt = rtt;
    this.#variance = variance;
  }
}
