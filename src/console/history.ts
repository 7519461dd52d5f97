/** Figures of the last hour, in arrays of a fixed size. */

/** A time and some values for it; null: not known then. */
export type Values<Name extends string> = Readonly<Record<Name, number | null>>;

/** Keeps the newest samples; what is older falls out. */
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

  /** Samples from before the first one that there is, oldest first; what is not older is left out. */
  prepend(samples: readonly { readonly at: number; readonly values: Partial<Values<Name>> }[]): void {
    const first = this.#times[0] ?? Number.POSITIVE_INFINITY;
    const older = samples.filter(({ at }) => at < first).slice(-Math.max(0, this.#capacity - this.#times.length));
    this.#times.unshift(...older.map(({ at }) => at));
    for (const [name, column] of this.#columns) column.unshift(...older.map(({ values }) => values[name] ?? null));
  }

  /** Whether a figure has been known in any sample that is kept. */
  knows(name: Name): boolean {
    return this.#columns.get(name)?.some((value) => value !== null) === true;
  }

  /** Times in seconds, as charts have them. */
  times(): number[] {
    return this.#times.map((ms) => ms / 1000);
  }

  column(name: Name): (number | null)[] {
    return [...(this.#columns.get(name) ?? [])];
  }

  /** Null before the first sample, and where it was not known. */
  last(name: Name): number | null {
    return this.#columns.get(name)?.at(-1) ?? null;
  }
}
