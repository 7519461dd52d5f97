/** Alerts for Prometheus, in its text format (version 0.0.4). */
import type { AlertFigures } from './alert-sender.ts';

const METRICS: readonly (readonly [name: string, help: string, figure: keyof AlertFigures])[] = [
  ['delivered_total', 'Alerts that their server has answered', 'delivered'],
  ['unwelcome_total', 'Alerts that it answered with something else than status 200 and a JSON object', 'unwelcome'],
  ['failed_total', 'Alerts given up, because it could not be reached', 'failed'],
  ['dropped_total', 'Alerts that gave way to newer ones, because too many waited', 'dropped'],
  ['waiting', 'Alerts it is still to hear', 'waiting'],
];

/** One line for each figure; '' for a server without alerts. */
export function alertMetrics(figures: AlertFigures | null): string {
  if (figures === null) return '';
  const lines = METRICS.flatMap(([name, help, figure]) => [
    `# HELP millrace_alerts_${name} ${help}`,
    `# TYPE millrace_alerts_${name} ${name.endsWith('_total') ? 'counter' : 'gauge'}`,
    `millrace_alerts_${name} ${figures[figure]}`,
  ]);
  return `${lines.join('\n')}\n`;
}
