/** Several metrics of many things of one kind: one series for each thing with its own labels, and one sum for all other things. */
import type { MetricDefinition, MetricFamily, MetricsPage } from './metrics.ts';

/** A metric of things of one kind. */
export interface SeriesDefinition<T> extends MetricDefinition {
  readonly type: 'counter' | 'gauge';
  /** Undefined: the thing has no such figure. */
  readonly value: (item: T) => number | undefined;
  /** How the things without labels are combined; default: the sum. */
  readonly others?: 'sum' | 'max' | 'none';
}

/**
 * Writes the series page by page. The sum of counters without labels adds the growth of each since the previous page, so it never falls
 * when a thing ends.
 */
export class MetricSeries<T> {
  readonly definitions: readonly SeriesDefinition<T>[];
  readonly #othersLabels: string;
  /** Counters of the things without labels on the previous page, by key. */
  #last = new Map<unknown, Float64Array>();
  #now = new Map<unknown, Float64Array>();
  /** Totals of counters, and gauges of this page. */
  readonly #others: Float64Array;
  #isSummed = false;
  #families: readonly MetricFamily[] = [];

  /** `others`: the labels of the sum. */
  constructor(definitions: readonly SeriesDefinition<T>[], others: string) {
    this.definitions = definitions;
    this.#othersLabels = others;
    this.#others = new Float64Array(definitions.length);
  }

  begin(page: MetricsPage): void {
    this.#families = this.definitions.map((definition) => page.family(definition));
    this.definitions.forEach(({ type }, n) => {
      if (type === 'gauge') this.#others[n] = 0;
    });
    this.#now = new Map();
  }

  /** `labels`: those of the thing; null adds it to the sum. `key` identifies the thing on all pages. */
  add(item: T, labels: string | null, key: unknown): void {
    if (labels === null) {
      this.#sum(item, key);
      return;
    }
    for (let n = 0; n < this.definitions.length; n += 1) {
      const value = this.definitions[n]?.value(item);
      if (value !== undefined) this.#families[n]?.add(value, labels);
    }
  }

  end(): void {
    this.#last = this.#now;
    if (!this.#isSummed) return;
    this.definitions.forEach(({ others }, n) => {
      if (others !== 'none') this.#families[n]?.add(this.#others[n] ?? 0, this.#othersLabels);
    });
  }

  #sum(item: T, key: unknown): void {
    this.#isSummed = true;
    const before = this.#last.get(key);
    const now = new Float64Array(this.definitions.length);
    this.#now.set(key, now);
    this.definitions.forEach(({ type, value, others = 'sum' }, n) => {
      const figure = value(item) ?? 0;
      now[n] = figure;
      const sum = this.#others[n] ?? 0;
      if (type === 'counter') this.#others[n] = sum + grown(figure, before?.[n] ?? 0);
      else this.#others[n] = others === 'max' ? Math.max(sum, figure) : sum + figure;
    });
  }
}

/** A counter that is lower than before has started again from 0. */
function grown(figure: number, before: number): number {
  return figure >= before ? figure - before : figure;
}
