/** Tasks of one kind by their state, counted for Prometheus. */
import type { MetricDefinition, MetricSource } from '../../util/metrics.ts';

/** How the metrics of a kind of task are called. */
export interface TaskNouns {
  /** Name in metrics: `recordings`. */
  readonly name: string;
  /** In words: `Recording tasks`. */
  readonly what: string;
  /** States that a task can have while it is listed. */
  readonly states: readonly string[];
}

/** A gauge of the tasks in each state. */
export function taskMetrics({ name, what, states }: TaskNouns, tasks: () => Iterable<{ readonly state: string }>): MetricSource {
  const metric: MetricDefinition = { name: `millrace_${name}`, help: `${what}, by state`, type: 'gauge' };
  return {
    definitions: [metric],
    collect(page) {
      const counts = new Map(states.map((state) => [state, 0]));
      for (const { state } of tasks()) counts.set(state, (counts.get(state) ?? 0) + 1);
      for (const [state, count] of counts) page.family(metric).add(count, `state="${state}"`);
    },
  };
}

/** Counters of one object. */
export function counterMetrics<Counts extends object>(
  counts: Counts,
  metrics: readonly (readonly [figure: keyof Counts, name: string, help: string])[],
): MetricSource {
  const definitions = metrics.map(([, name, help]): MetricDefinition => ({ name: `millrace_${name}`, help, type: 'counter' }));
  return {
    definitions,
    collect(page) {
      metrics.forEach(([figure], n) => {
        page.family(definitions[n] as MetricDefinition).add(Number(counts[figure]));
      });
    },
  };
}
