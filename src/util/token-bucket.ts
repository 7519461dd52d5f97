/** Limits how often something may happen: a number of times at once, and a rate in the long run. Nothing is allocated per use. */
export class TokenBucket {
  readonly #burst: number;
  readonly #perSecond: number;
  #tokens: number;
  #filledAt = 0;

  /** `burst`: the number of uses after an idle period. */
  constructor(options: { readonly burst: number; readonly perSecond: number }) {
    this.#burst = options.burst;
    this.#perSecond = options.perSecond;
    this.#tokens = options.burst;
  }

  /** True when one more use is allowed at `now` (monotonic, ms); the use is then counted. */
  take(now: number): boolean {
    const elapsed = Math.max(0, now - this.#filledAt);
    this.#filledAt = now;
    this.#tokens = Math.min(this.#burst, this.#tokens + (elapsed * this.#perSecond) / 1000);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Takes back the last use. */
  giveBack(): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + 1);
  }
}
