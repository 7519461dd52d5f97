/** Control servers for Prometheus, in its text format (version 0.0.4). */
import type { ControlServerFigures } from './control-server.ts';

type Figure = Exclude<keyof ControlServerFigures, 'url'>;

/** The name of what counts up from the start ends with `_total`. */
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

/** One line for each figure of each control server; '' where there is none. */
export function admissionMetrics(servers: readonly ControlServerFigures[]): string {
  if (servers.length === 0) return '';
  // Two may differ by their keys only, which nobody is shown.
  const byUrl = Map.groupBy(servers, ({ url }) => url);
  const lines = METRICS.flatMap(([name, help, figure]) => [
    `# HELP millrace_admission_${name} ${help}`,
    `# TYPE millrace_admission_${name} ${name.endsWith('_total') ? 'counter' : 'gauge'}`,
    ...[...byUrl].map(([url, same]) => `millrace_admission_${name}{server="${url}"} ${same.reduce((sum, one) => sum + one[figure], 0)}`),
  ]);
  return `${lines.join('\n')}\n`;
}
