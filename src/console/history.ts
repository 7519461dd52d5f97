/** Figures of the last hour, in arrays of a fixed size. */

/** A time and values for it; null: not known at that time. */
export type Values<Name extends string> = Readonly<Record<Name, number | null>>;

/** Keeps the newest samples and drops older ones. */
export class History<Name extends string> {
  readonly names: readonly Name[];
  readonly #capacity: number;
  readonly #times: number[] = [];
  readonly #columns: Map<Name, (number | null)[]>;

  constructor(names: readonly Name[], capacity: number) {
    this.names = names;
    this.#capacity = capacity;
    this.#columns = new Map(names.map((name) => [name, []]));
  }

  get size(): number {
    return this.#times.length;
  }

  /** `at`: wall clock, ms. */
  add(at: number, values: Values<Name>): void {
    this.#times.push(at);
    for (const [name, column] of this.#columns) column.push(values[name]);
    if (this.#times.length <= this.#capacity) return;
    this.#times.shift();
    for (const column of this.#columns.values()) column.shift();
  }

  /** Adds samples from before the first sample, oldest first; newer ones are ignored. */
  prepend(samples: readonly { readonly at: number; readonly values: Partial<Values<Name>> }[]): void {
    const first = this.#times[0] ?? Number.POSITIVE_INFINITY;
    const older = samples.filter(({ at }) => at < first).slice(-Math.max(0, this.#capacity - this.#times.length));
    this.#times.unshift(...older.map(({ at }) => at));
    for (const [name, column] of this.#columns) column.unshift(...older.map(({ values }) => values[name] ?? null));
  }

  /** Whether any kept sample has a value for this figure. */
  knows(name: Name): boolean {
    return this.#columns.get(name)?.some((value) => value !== null) === true;
  }

  /** Times in seconds, as the charts need them. */
  times(): number[] {
    return this.#times.map((ms) => ms / 1000);
  }

  column(name: Name): (number | null)[] {
    return [...(this.#columns.get(name) ?? [])];
  }

  /** Null before the first sample, and where the value is not known. */
  last(name: Name): number | null {
    return this.#columns.get(name)?.at(-1) ?? null;
  }
}
