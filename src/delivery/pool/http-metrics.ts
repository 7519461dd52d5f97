/** Viewers over HTTP, for Prometheus. */
import { labelText, type MetricDefinition, type MetricSource } from '../../util/metrics.ts';
import type { HttpTotals } from './http-figures.ts';

/** The names of counters end with `_total`. */
const METRICS: readonly (readonly [name: string, help: string, figure: Exclude<keyof HttpTotals, 'statuses'>])[] = [
  ['connections', 'Open connections of viewers', 'connections'],
  ['waiting_requests', 'Requests that wait for media, for a stream or for a control server', 'waiting'],
  ['connections_total', 'Connections of viewers', 'opened'],
  ['refused_connections_total', 'Connections refused because there were too many', 'refused'],
  ['requests_total', 'Requests of viewers', 'requests'],
  ['overload_refusals_total', 'Requests refused because too many waited, or because there was no memory for a file', 'overloads'],
  ['invalid_requests_total', 'Requests that break HTTP or exceed a limit', 'faults'],
  ['timeouts_total', 'Connections closed because the client took too long', 'timeouts'],
  ['aborts_total', 'Connections that ended before an answer was sent completely', 'aborts'],
  ['sent_bytes_total', 'Bytes of answers, without TLS', 'bytesSent'],
  ['unkept_answers_total', 'Answers for several viewers that were made again because there was no room to keep them', 'unkept'],
  ['held_requests_total', 'Requests that waited in the addon for the answer to an equal one', 'held'],
  ['unheld_requests_total', 'Requests that waited in JavaScript because the addon had no room for them', 'crowded'],
];

const DEFINITIONS = METRICS.map(
  ([name, help]): MetricDefinition => ({ name: `millrace_http_${name}`, help, type: name.endsWith('_total') ? 'counter' : 'gauge' }),
);
const RESPONSES: MetricDefinition = { name: 'millrace_http_responses_total', help: 'Answers by class of their status', type: 'counter' };
const RESTARTS: MetricDefinition = {
  name: 'millrace_delivery_thread_restarts_total',
  help: 'Delivery threads that died and were started again',
  type: 'counter',
};
const CLASSES = [1, 2, 3, 4, 5].map((digit) => labelText({ class: `${digit}xx` }));

/** Figures of LL-HLS, HLS, thumbnails and pages. WebSockets and WHEP are requests here until the main thread takes them. */
export function httpMetrics(pool: { readonly http: HttpTotals; status(): { readonly restarts: number } }): MetricSource {
  return {
    definitions: [...DEFINITIONS, RESPONSES, RESTARTS],
    collect(page) {
      const totals = pool.http;
      METRICS.forEach(([, , figure], n) => {
        page.family(DEFINITIONS[n] as MetricDefinition).add(totals[figure]);
      });
      const responses = page.family(RESPONSES);
      CLASSES.forEach((labels, n) => {
        responses.add(totals.statuses[n + 1] ?? 0, labels);
      });
      page.family(RESTARTS).add(pool.status().restarts);
    },
  };
}
