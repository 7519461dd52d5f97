/** Sliding window of 128 packet indices (RFC 3711 section 3.3.2). */
const SIZE = 128;

/** One for each source, and one for RTCP. Call `fresh` before a packet is authenticated, `mark` only after. */
export class ReplayWindow {
  #newest = -1;
  /** Last index seen in each place; -1 for none. */
  readonly #seen = new Float64Array(SIZE).fill(-1);

  /** The largest index marked; -1 before the first. */
  get newest(): number {
    return this.#newest;
  }

  /** False for an index that was marked, or is older than the window. */
  fresh(index: number): boolean {
    return index > this.#newest - SIZE && this.#seen[index % SIZE] !== index;
  }

  mark(index: number): void {
    this.#seen[index % SIZE] = index;
    if (index > this.#newest) this.#newest = index;
  }
}
