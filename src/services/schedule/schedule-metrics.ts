/** Scheduled channels, counted for Prometheus. */
import type { MetricDefinition, MetricSource } from '../../util/metrics.ts';

/** The counted values of a channel. */
export interface CountedChannel {
  readonly onAir: object | null;
  /** Troubles told since it began. */
  readonly trouble: { readonly count: number };
}

const METRICS = {
  channels: {
    name: 'millrace_scheduled_channels',
    help: 'Scheduled channels, by what is on air: an item of a program, or the fallback or nothing',
    type: 'gauge',
  },
  troubles: {
    name: 'millrace_scheduled_channel_troubles_total',
    help: 'Items of scheduled channels that could not be played or ended early, and streams of channels that could not begin',
    type: 'counter',
  },
} as const satisfies Record<string, MetricDefinition>;

/** `channels`: running channels; `past`: counters of ended ones. */
export function scheduleMetrics(all: { readonly channels: Iterable<CountedChannel>; readonly pastTroubles: number }): MetricSource {
  return {
    definitions: Object.values(METRICS),
    collect(page) {
      const onAir = { program: 0, other: 0 };
      let troubles = all.pastTroubles;
      for (const channel of all.channels) {
        onAir[channel.onAir === null ? 'other' : 'program'] += 1;
        troubles += channel.trouble.count;
      }
      for (const [what, count] of Object.entries(onAir)) page.family(METRICS.channels).add(count, `on_air="${what}"`);
      page.family(METRICS.troubles).add(troubles);
    },
  };
}
