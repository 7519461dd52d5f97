/** Who waits to begin, and who found no room to wait, for Prometheus in its text format (version 0.0.4). */
import type { NewcomerTurns } from '../util/newcomer-turns.ts';

/** The figures of the turns of a server. */
export type NewcomerFigures = Pick<NewcomerTurns, 'size' | 'refused'>;

/** Two figures of the whole server. */
export function newcomerMetrics({ size, refused }: NewcomerFigures): string {
  return `# HELP millrace_newcomers_waiting Connections, publications and streams that wait for their turn to begin
# TYPE millrace_newcomers_waiting gauge
millrace_newcomers_waiting ${size}
# HELP millrace_newcomers_refused_total Those that found no room to wait in
# TYPE millrace_newcomers_refused_total counter
millrace_newcomers_refused_total ${refused}
`;
}
