/** Counts the file descriptors used by a kind of client, over all threads. */

/** Index of the limit in the shared memory; the slots follow. */
const LIMIT = 0;

/**
 * One thread's part of the ledger. Each thread counts its descriptors in its own slot, and the limit applies to the sum. When a thread
 * dies, its descriptors are closed, and its successor starts with an empty slot.
 */
export class DescriptorLedger {
  /** Requests refused in this thread. */
  refused = 0;
  readonly #counts: Int32Array;
  readonly #slot: number;

  /** `shared`: see `open`. `slot`: number of the thread, from 0. */
  constructor(shared: SharedArrayBuffer, slot = 0) {
    this.#counts = new Int32Array(shared);
    this.#slot = slot + 1;
    if (this.#slot >= this.#counts.length) throw new RangeError(`the ledger has ${this.#counts.length - 1} slots`);
    Atomics.store(this.#counts, this.#slot, 0);
  }

  /** Memory for a ledger of `limit` descriptors and `slots` threads. */
  static open(limit: number, slots = 1): SharedArrayBuffer {
    const shared = new SharedArrayBuffer((slots + 1) * Int32Array.BYTES_PER_ELEMENT);
    new Int32Array(shared)[LIMIT] = Math.min(limit, 2 ** 30);
    return shared;
  }

  /** Descriptors that all threads may hold. */
  get limit(): number {
    return Atomics.load(this.#counts, LIMIT);
  }

  /** Descriptors that all threads hold. */
  get held(): number {
    let held = 0;
    for (let slot = LIMIT + 1; slot < this.#counts.length; slot += 1) held += Atomics.load(this.#counts, slot);
    return held;
  }

  /** Takes `count` descriptors; false, and takes none, if there are not enough left. */
  take(count = 1): boolean {
    Atomics.add(this.#counts, this.#slot, count);
    if (this.held <= this.limit) return true;
    Atomics.sub(this.#counts, this.#slot, count);
    this.refused += 1;
    return false;
  }

  /** Returns descriptors. */
  give(count = 1): void {
    Atomics.sub(this.#counts, this.#slot, count);
  }
}
