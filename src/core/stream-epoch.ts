/** Time over which the source is watched before its clock is taken to have moved, ms. */
const WINDOW_MS = 4000;
/** Less than this is delay of the network, ms. */
const TOLERANCE_MS = 1000;

/**
 * The wall clock of media time 0. The packet that waited least gives the best estimate: delays only ever add. When all packets of some
 * seconds are late (or early) by more than a delay explains, the source paused or jumped, and the epoch follows.
 */
export class StreamEpoch {
  #value = Number.POSITIVE_INFINITY;
  #settled = false;
  #best = Number.POSITIVE_INFINITY;
  #windowEnd = Number.NEGATIVE_INFINITY;
  /** Minimum of the previous window; infinite before the first one. */
  #bestBefore = Number.POSITIVE_INFINITY;

  /** Estimate from the packets of the last seconds, ms: closer than `value`, which ignores small differences. */
  get estimate(): number {
    const told = Number.isFinite(this.#bestBefore) ? this.#bestBefore : this.#value;
    return Math.min(told, this.#best);
  }

  /** ms since the epoch of Unix; infinite before the first packet. */
  get value(): number {
    return this.#value;
  }

  /** Media is being handed on: from now on small differences do not count. */
  settle(): void {
    this.#settled = true;
  }

  /** Takes a packet with media time `mediaMs` that arrived at `now`, wall clock, both ms. True if the epoch has moved. */
  observe(mediaMs: number, now: number): boolean {
    const epoch = now - mediaMs;
    if (!this.#settled) {
      this.#value = Math.min(this.#value, epoch);
      return false;
    }
    const { windowEnd, best } = { windowEnd: this.#windowEnd, best: this.#best };
    if (now < windowEnd) {
      this.#best = Math.min(best, epoch);
      return false;
    }
    this.#windowEnd = now + WINDOW_MS;
    this.#best = epoch;
    this.#bestBefore = best;
    if (!Number.isFinite(best) || Math.abs(best - this.#value) <= TOLERANCE_MS) return false;
    this.#value = best;
    return true;
  }
}
