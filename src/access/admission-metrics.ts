/** Control servers for Prometheus. */
import { labelText, type MetricDefinition, type MetricSource } from '../util/metrics.ts';
import type { ControlServerFigures } from './control-server.ts';

type Figure = Exclude<keyof ControlServerFigures, 'url'>;

/** The names of counters end with `_total`. */
const METRICS: readonly (readonly [name: string, help: string, figure: Figure])[] = [
  ['requests_total', 'Clients the control server was asked about', 'requests'],
  ['allowed_total', 'Clients it let in', 'allowed'],
  ['refused_total', 'Clients it refused', 'refused'],
  ['failures_total', 'Clients refused because there was no answer that could be used, or no room for the question', 'failed'],
  ['in_flight', 'Questions without answer yet', 'inFlight'],
  ['sessions', 'Clients let in and not gone', 'admitted'],
  ['closings_total', 'Ends of sessions it was told of', 'closingsDelivered'],
  ['closings_lost_total', 'Ends of sessions it does not know of: it did not answer in time, or too many waited', 'closingsLost'],
  ['closings_waiting', 'Ends of sessions it is still to be told of', 'closingsPending'],
];

const DEFINITIONS = METRICS.map(
  ([name, help]): MetricDefinition => ({ name: `millrace_admission_${name}`, help, type: name.endsWith('_total') ? 'counter' : 'gauge' }),
);

/** Each figure of each control server. */
export function admissionMetrics(servers: () => readonly ControlServerFigures[]): MetricSource {
  return {
    definitions: DEFINITIONS,
    collect(page) {
      // Two control servers may differ by their keys only, which are not shown.
      const byUrl = Map.groupBy(servers(), ({ url }) => url);
      for (const [url, same] of byUrl) {
        const labels = labelText({ server: url });
        METRICS.forEach(([, , figure], n) => {
          const sum = same.reduce((total, one) => total + one[figure], 0);
          page.family(DEFINITIONS[n] as MetricDefinition).add(sum, labels);
        });
      }
    },
  };
}
