/** Lets so many things happen per second, none of them saved up for longer than that. */
export class RateBudget {
  readonly #perSecond: number;
  #tokens: number;
  #filledAt = 0;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
    this.#tokens = perSecond;
  }

  /** True when one more may happen at `now` µs, which is then counted. */
  take(now: number): boolean {
    const elapsed = Math.max(0, now - this.#filledAt);
    this.#filledAt = now;
    this.#tokens = Math.min(this.#perSecond, this.#tokens + (elapsed * this.#perSecond) / 1_000_000);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** What was taken last is not to count. */
  giveBack(): void {
    this.#tokens = Math.min(this.#perSecond, this.#tokens + 1);
  }
}
