/** Metrics of newcomers: those that wait for their turn, and those that were refused because the queue was full. */
import type { MetricDefinition, MetricSource } from '../util/metrics.ts';
import type { NewcomerTurns } from '../util/newcomer-turns.ts';

/** The figures of the turns of a server. */
export type NewcomerFigures = Pick<NewcomerTurns, 'size' | 'refused'>;

const WAITING: MetricDefinition = {
  name: 'millrace_newcomers_waiting',
  help: 'Connections, publications and streams that wait for their turn to begin',
  type: 'gauge',
};
const REFUSED: MetricDefinition = {
  name: 'millrace_newcomers_refused_total',
  help: 'Connections, publications and streams refused because too many waited for their turn',
  type: 'counter',
};

/** Two figures of the whole server. */
export function newcomerMetrics(turns: NewcomerFigures): MetricSource {
  return {
    definitions: [WAITING, REFUSED],
    collect(page) {
      page.family(WAITING).add(turns.size);
      page.family(REFUSED).add(turns.refused);
    },
  };
}
