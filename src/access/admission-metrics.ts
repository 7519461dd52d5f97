/** Metrics of control servers. */
import { labelText, type MetricDefinition, type MetricSource } from '../util/metrics.ts';
import type { ControlServerFigures } from './control-server.ts';

type Figure = Exclude<keyof ControlServerFigures, 'url'>;

/** The names of counters end with `_total`. */
const METRICS: readonly (readonly [name: string, help: string, figure: Figure])[] = [
  ['requests_total', 'Clients that were submitted to the control server', 'requests'],
  ['allowed_total', 'Clients that the control server admitted', 'allowed'],
  ['refused_total', 'Clients that the control server refused', 'refused'],
  ['failures_total', 'Clients refused because the control server gave no valid answer, or too many requests waited', 'failed'],
  ['in_flight', 'Requests to the control server that wait for an answer', 'inFlight'],
  ['sessions', 'Admitted clients that are connected', 'admitted'],
  ['closings_total', 'Ends of sessions reported to the control server', 'closingsDelivered'],
  [
    'closings_lost_total',
    'Ends of sessions not reported to the control server: it did not answer in time, or too many waited',
    'closingsLost',
  ],
  ['closings_waiting', 'Ends of sessions that wait to be reported to the control server', 'closingsPending'],
];

const DEFINITIONS = METRICS.map(
  ([name, help]): MetricDefinition => ({ name: `millrace_admission_${name}`, help, type: name.endsWith('_total') ? 'counter' : 'gauge' }),
);

/** Each figure of each control server. */
export function admissionMetrics(servers: () => readonly ControlServerFigures[]): MetricSource {
  return {
    definitions: DEFINITIONS,
    collect(page) {
      // Control servers with one URL may differ by their keys, which are not shown.
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
