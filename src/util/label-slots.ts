/** Keeps the labels of metrics few: a limited number of streams have their own, all others share one. */

interface Slot {
  readonly labels: string;
  page: number;
}

/**
 * A key keeps its slot as long as each page requests it, so that series do not come and go. Pages are made one at a time, between `begin`
 * and `end`.
 */
export class LabelSlots {
  readonly limit: number;
  readonly #slots = new Map<string, Slot>();
  /** Keys without a slot, on this page and on the previous page. */
  #without = new Set<string>();
  #withoutBefore: ReadonlySet<string> = new Set();
  #page = 0;
  #refused = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Keys refused since the start. A key counts again only after a page that did not refuse it. */
  get refused(): number {
    return this.#refused;
  }

  /** Keys without a slot on the present page. */
  get without(): number {
    return this.#without.size;
  }

  begin(): void {
    this.#page += 1;
    this.#withoutBefore = this.#without;
    this.#without = new Set();
  }

  /** The labels of `key`, which `make` makes once for a new slot; null: no slot is free. */
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

  /** Frees the slots of keys that this page has not requested. */
  end(): void {
    for (const [key, slot] of this.#slots) if (slot.page !== this.#page) this.#slots.delete(key);
  }
}
