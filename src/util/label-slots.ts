/** Keeps the labels of metrics few: a limited number of streams have their own, all others share one. */

interface Slot {
  readonly labels: string;
  page: number;
}

/**
 * A holder keeps its slot as long as each page requests it, so that series do not come and go. One page at a time, between `begin` and
 * `end`.
 */
export class LabelSlots {
  readonly limit: number;
  readonly #slots = new Map<string, Slot>();
  /** Streams without a place, on this page and on the last. */
  #without = new Set<string>();
  #withoutBefore: ReadonlySet<string> = new Set();
  #page = 0;
  #refused = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Streams that found no place, each once while that lasts. */
  get refused(): number {
    return this.#refused;
  }

  /** How many have no place now. */
  get without(): number {
    return this.#without.size;
  }

  begin(): void {
    this.#page += 1;
    this.#withoutBefore = this.#without;
    this.#without = new Set();
  }

  /** The labels of `key`, which `make` tells when they are new; null: there is no place for them. */
  of(key: string, make: () => string): string | null {
    const slot = this.#slots.get(key);
    if (slot !== undefined) {
      slot.page = this.#page;
      return slot.labels;
    }
    if (this.#slots.size < this.limit) {
      const labels = make();
      this.#slots.set(key, { labels, page: this.#page });
      return labels;
    }
    if (!this.#without.has(key)) {
      this.#without.add(key);
      if (!this.#withoutBefore.has(key)) this.#refused += 1;
    }
    return null;
  }

  /** Streams that were not asked for give up their places. */
  end(): void {
    for (const [key, slot] of this.#slots) if (slot.page !== this.#page) this.#slots.delete(key);
  }
}
