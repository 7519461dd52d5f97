/** Prometheus metrics: their definition, and the page in either text format (0.0.4, OpenMetrics 1.0). */
import type { LabelSlots } from './label-slots.ts';

/** Name and description of a metric. Counters end with `_total`; units are seconds and bytes. */
export interface MetricDefinition {
  readonly name: string;
  /** One sentence without full stop. */
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
}

/** The supported formats. */
export type MetricsFormat = 'prometheus' | 'openmetrics';

/** Media types of the formats. */
export const METRICS_TYPES: Readonly<Record<MetricsFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** An owner of figures. `collect` may yield wherever other work of the thread may run in between. */
export interface MetricSource {
  /** All metrics that `collect` may write; they are described on the page even without a sample. */
  readonly definitions: readonly MetricDefinition[];
  collect(page: MetricsPage): Iterable<void> | void;
}

/** The samples of one metric. */
export class MetricFamily {
  readonly definition: MetricDefinition;
  #lines = '';

  constructor(definition: MetricDefinition) {
    this.definition = definition;
  }

  /** `labels` as `labelText` makes them. */
  add(value: number, labels = ''): void {
    this.#line('', labels, value);
  }

  /** A distribution: cumulated counts for each bound, then for all values. */
  addHistogram({ bounds, counts, sum, count }: HistogramFigures, labels = ''): void {
    const prefix = labels === '' ? '' : `${labels},`;
    let below = 0;
    for (let n = 0; n < bounds.length; n += 1) {
      below += counts[n] ?? 0;
      this.#line('_bucket', `${prefix}le="${bounds[n]}"`, below);
    }
    this.#line('_bucket', `${prefix}le="+Inf"`, count);
    this.#line('_sum', labels, sum);
    this.#line('_count', labels, count);
  }

  text(format: MetricsFormat): string {
    const { name, help, type } = this.definition;
    // OpenMetrics names a counter without `_total`.
    const called = format === 'openmetrics' && type === 'counter' ? name.replace(/_total$/, '') : name;
    return `# HELP ${called} ${help}\n# TYPE ${called} ${type}\n${this.#lines}`;
  }

  #line(suffix: string, labels: string, value: number): void {
    this.#lines +=
      labels === ''
        ? `${this.definition.name}${suffix} ${numberText(value)}\n`
        : `${this.definition.name}${suffix}{${labels}} ${numberText(value)}\n`;
  }
}

/** One answer while it is made. */
export class MetricsPage {
  readonly #families = new Map<string, MetricFamily>();
  /** Streams and applications with their own labels. */
  readonly streams: LabelSlots;
  readonly applications: LabelSlots;

  constructor({ streams, applications }: { readonly streams: LabelSlots; readonly applications: LabelSlots }) {
    this.streams = streams;
    this.applications = applications;
  }

  /** The family of the metric, which is on the page from now on. */
  family(definition: MetricDefinition): MetricFamily {
    let family = this.#families.get(definition.name);
    if (family === undefined) {
      family = new MetricFamily(definition);
      this.#families.set(definition.name, family);
    }
    return family;
  }

  text(format: MetricsFormat = 'prometheus'): string {
    let text = '';
    for (const family of this.#families.values()) text += family.text(format);
    return format === 'openmetrics' ? `${text}# EOF\n` : text;
  }
}

/** `name="value",…`, escaped as both formats want it. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  let text = '';
  for (const [name, value] of Object.entries(labels)) text += `${text === '' ? '' : ','}${name}="${escaped(value)}"`;
  return text;
}

/** Figures of a `Histogram`: `counts[i]` values lie above bound i - 1 and up to bound i. */
export interface HistogramFigures {
  readonly bounds: readonly number[];
  readonly counts: ArrayLike<number>;
  readonly sum: number;
  readonly count: number;
}

/** Counts values by size; nothing is allocated per value. */
export class Histogram implements HistogramFigures {
  readonly bounds: readonly number[];
  readonly counts: Float64Array;
  sum = 0;
  count = 0;

  /** `bounds` are in ascending order. */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length);
  }

  observe(value: number): void {
    this.sum += value;
    this.count += 1;
    for (let n = 0; n < this.bounds.length; n += 1) {
      if (value > (this.bounds[n] ?? 0)) continue;
      this.counts[n] = (this.counts[n] ?? 0) + 1;
      return;
    }
  }
}

function escaped(value: string): string {
  return /[\\"\n]/.test(value) ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n') : value;
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}
