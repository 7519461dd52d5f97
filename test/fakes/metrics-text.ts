/** The text of a metric source, as Prometheus reads it. */
import { LabelSlots } from '../../src/util/label-slots.ts';
import { type MetricSource, type MetricsFormat, MetricsPage } from '../../src/util/metrics.ts';

/** A page of `source`; `streams`: number of streams with their own labels, default: all. */
export function metricsText(
  source: Pick<MetricSource, 'collect'>,
  { format = 'prometheus', streams = new LabelSlots(1000) }: { readonly format?: MetricsFormat; readonly streams?: LabelSlots } = {},
): string {
  const page = new MetricsPage({ streams, applications: new LabelSlots(1000) });
  streams.begin();
  for (const _pause of source.collect(page) ?? []);
  streams.end();
  return page.text(format);
}
