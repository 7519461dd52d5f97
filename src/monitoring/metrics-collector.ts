/** Makes the answer to `GET /metrics` from the figures of all their owners. */
import { inSlices } from '../util/in-slices.ts';
import { LabelSlots } from '../util/label-slots.ts';
import { type MetricDefinition, type MetricSource, type MetricsFormat, MetricsPage } from '../util/metrics.ts';

const LIMITS = {
  limit: {
    name: 'millrace_metrics_streams_limit',
    help: 'Limit of streams, and of applications, with their own labels (Managers/Metrics/MaxStreams)',
    type: 'gauge',
  },
  without: {
    name: 'millrace_metrics_streams_without_labels',
    help: 'Streams that share the labels of all others now',
    type: 'gauge',
  },
  refused: {
    name: 'millrace_metrics_labels_refused_total',
    help: 'Streams without their own labels because too many streams have labels',
    type: 'counter',
  },
} as const satisfies Record<string, MetricDefinition>;

/** Simultaneous requests share one page. Its only state is which streams and applications have labels. */
export class MetricsCollector {
  readonly #sources: readonly MetricSource[];
  readonly #streams: LabelSlots;
  readonly #applications: LabelSlots;
  #collecting: Promise<MetricsPage> | null = null;

  /** `maxStreams`: limit of streams with labels. */
  constructor(sources: readonly MetricSource[], maxStreams: number) {
    this.#sources = sources;
    this.#streams = new LabelSlots(maxStreams);
    this.#applications = new LabelSlots(maxStreams);
  }

  /** All metrics of an answer, with or without figures. */
  get definitions(): MetricDefinition[] {
    return [...this.#sources.flatMap(({ definitions }) => definitions), ...Object.values(LIMITS)];
  }

  /** The text of the page in this format. */
  async text(format: MetricsFormat): Promise<string> {
    this.#collecting ??= this.#collect().finally(() => {
      this.#collecting = null;
    });
    const page = await this.#collecting;
    return page.text(format);
  }

  async #collect(): Promise<MetricsPage> {
    const page = new MetricsPage({ streams: this.#streams, applications: this.#applications });
    for (const definition of this.definitions) page.family(definition);
    this.#streams.begin();
    this.#applications.begin();
    await inSlices(this.#collectAll(page));
    page.family(LIMITS.limit).add(this.#streams.limit);
    page.family(LIMITS.without).add(this.#streams.without);
    page.family(LIMITS.refused).add(this.#streams.refused);
    this.#streams.end();
    this.#applications.end();
    return page;
  }

  *#collectAll(page: MetricsPage): Iterable<void> {
    for (const source of this.#sources) yield* source.collect(page) ?? [];
  }
}
