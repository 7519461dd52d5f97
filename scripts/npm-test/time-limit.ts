/** Time limits of the steps of `npm test`. */

/**
 * A limit shared by several steps in order. Each step has a guaranteed part, however long earlier steps took; unused time goes to later
 * steps.
 */
export class TimeLimit {
  readonly #now: () => number;
  readonly #end: number;
  readonly #sureMs: number[];

  /**
   * @param limitMs for all steps, from now on
   * @param sureMs guaranteed time of each step, in their order
   */
  constructor(limitMs: number, sureMs: readonly number[], now: () => number = () => performance.now()) {
    this.#now = now;
    this.#end = now() + limitMs;
    this.#sureMs = [...sureMs];
  }

  /** Milliseconds for the next step: the remaining time without the guaranteed parts of later steps. Call it once for each step. */
  next(): number {
    const own = this.#sureMs.shift();
    if (own === undefined) throw new RangeError('there are more steps than parts');
    const kept = this.#sureMs.reduce((sum, ms) => sum + ms, 0);
    return Math.max(own, Math.round(this.#end - this.#now() - kept));
  }
}

/** Text after the totals: the time of the run, if it exceeds the goal. */
export function timeRemark(tookMs: number, goalMs: number): string {
  return tookMs > goalMs ? `, took ${clock(tookMs)}, more than the ${goalMs / 60_000} minutes it should` : '';
}

function clock(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
