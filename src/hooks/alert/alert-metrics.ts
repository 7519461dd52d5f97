/** Metrics of alerts. */
import type { MetricDefinition, MetricSource } from '../../util/metrics.ts';
import type { AlertFigures } from './alert-sender.ts';

const METRICS: readonly (readonly [name: string, help: string, figure: keyof AlertFigures])[] = [
  ['delivered_total', 'Alerts that the alert server answered', 'delivered'],
  ['unwelcome_total', 'Alerts that the alert server answered with something else than status 200 and a JSON object', 'unwelcome'],
  ['failed_total', 'Alerts given up because the alert server could not be reached', 'failed'],
  ['dropped_total', 'Alerts dropped because too many newer alerts waited', 'dropped'],
  ['waiting', 'Alerts that wait to be sent', 'waiting'],
];
const DEFINITIONS = METRICS.map(
  ([name, help]): MetricDefinition => ({ name: `millrace_alerts_${name}`, help, type: name.endsWith('_total') ? 'counter' : 'gauge' }),
);

/** `figures` returns null while the server sends no alerts. */
export function alertMetrics(figures: () => AlertFigures | null): MetricSource {
  return {
    definitions: DEFINITIONS,
    collect(page) {
      const told = figures();
      if (told === null) return;
      METRICS.forEach(([, , figure], n) => {
        page.family(DEFINITIONS[n] as MetricDefinition).add(told[figure]);
      });
    },
  };
}
