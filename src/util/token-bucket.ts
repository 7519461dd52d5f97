/** Lets a thing happen so many times at once, and so many times a second in the long run. Nothing is allocated per use. */
export class TokenBucket {
  readonly #burst: number;
  readonly #perSecond: number;
  #tokens: number;
  #filledAt = 0;

  /** `burst`: at once, when nothing has happened for a while. */
  constructor(options: { readonly burst: number; readonly perSecond: number }) {
    this.#burst = options.burst;
    this.#perSecond = options.perSecond;
    this.#tokens = options.burst;
  }

  /** True when one more may happen at `now` (monotonic, ms), which is then counted. */
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
