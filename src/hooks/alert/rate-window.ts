/**
 * The mean of a rate over the last seconds. The rate of one second changes with every keyframe, and the mean since the start never forgets.
 */

/** Number of samples in the mean, and minimum for a mean. */
const MAX_KEPT = 10;
const NEEDED = 4;

/** Takes a sample twice a second. */
export class RateWindow {
  #samples: number[] = [];

  /** Samples of 0 are unknown rates, and ignored. */
  add(rate: number): void {
    if (rate <= 0) return;
    this.#samples.push(rate);
    if (this.#samples.length > MAX_KEPT) this.#samples.shift();
  }

  /** 0 while there are too few samples. */
  get mean(): number {
    if (this.#samples.length < NEEDED) return 0;
    return this.#samples.reduce((sum, rate) => sum + rate, 0) / this.#samples.length;
  }

  clear(): void {
    this.#samples = [];
  }
}
