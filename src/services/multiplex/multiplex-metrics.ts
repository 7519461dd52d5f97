/** Multiplex channels, counted for Prometheus. */
import type { MetricDefinition, MetricSource } from '../../util/metrics.ts';

const CHANNELS: MetricDefinition = {
  name: 'millrace_multiplex_channels',
  help: 'Multiplex channels, by whether they are on air',
  type: 'gauge',
};

/** `channels`: the channels of all applications. */
export function multiplexMetrics(channels: () => Iterable<{ readonly onAir: boolean }>): MetricSource {
  return {
    definitions: [CHANNELS],
    collect(page) {
      const counts = { yes: 0, no: 0 };
      for (const { onAir } of channels()) counts[onAir ? 'yes' : 'no'] += 1;
      for (const [onAir, count] of Object.entries(counts)) page.family(CHANNELS).add(count, `on_air="${onAir}"`);
    },
  };
}
