/** The mean of a rate over the last seconds: that of one second goes up and down with every keyframe, that since the start forgets nothing. */

/** Samples that count, and how many are needed before there is a mean. */
const MAX_KEPT = 10;
const NEEDED = 4;

/** Takes a sample twice a second. */
export class RateWindow {
  #samples: number[] = [];

  /** Samples of 0 mean that nothing is known. */
  add(rate: number): void {
    if (rate <= 0) return;
    this.#samples.push(rate);
    if (this.#samples.length > MAX_KEPT) this.#samples.shift();
  }

  /** 0 while too little is known. */
  get mean(): number {
    if (this.#samples.length < NEEDED) return 0;
    return this.#samples.reduce((sum, rate) => sum + rate, 0) / this.#samples.length;
  }

  clear(): void {
    this.#samples = [];
  }
}
