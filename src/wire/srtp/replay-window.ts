/** Sliding window of 128 packet indices (RFC 3711 section 3.3.2). */
const SIZE = 128;

/** One for each source, and one for RTCP. Ask `fresh` before the packet is authentic, `mark` only after. */
export class ReplayWindow {
  #newest = -1;
  /** Which index was seen last in each place; -1 none. */
  readonly #seen = new Float64Array(SIZE).fill(-1);

  /** The largest index marked; -1 before the first. */
  get newest(): number {
    return this.#newest;
  }

  /** False for an index that was marked, or is too old to tell. */
  fresh(index: number): boolean {
    return index > this.#newest - SIZE && this.#seen[index % SIZE] !== index;
  }

  mark(index: number): void {
    this.#seen[index % SIZE] = index;
    if (index > this.#newest) this.#newest = index;
  }
}
