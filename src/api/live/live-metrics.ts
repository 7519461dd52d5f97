/** Metrics of live events. */
import { labelText, type MetricDefinition, type MetricSource } from '../../util/metrics.ts';
import type { EventFeed } from './live-feed.ts';

const METRICS = {
  events: { name: 'millrace_events_total', help: 'Events of GET /v1/events', type: 'counter' },
  folded: { name: 'millrace_events_folded_total', help: 'Sessions and refusals that were reported only in a sum', type: 'counter' },
  followers: { name: 'millrace_event_followers', help: 'Clients of GET /v1/events', type: 'gauge' },
  refused: {
    name: 'millrace_event_followers_refused_total',
    help: 'Clients of GET /v1/events refused because there were too many',
    type: 'counter',
  },
  cut: {
    name: 'millrace_event_followers_cut_total',
    help: 'Clients of GET /v1/events disconnected because they read nothing for too long',
    type: 'counter',
  },
  missed: {
    name: 'millrace_events_missed_total',
    help: 'Events that slow clients of GET /v1/events missed',
    type: 'counter',
  },
} as const satisfies Record<string, MetricDefinition>;

/** Figures of the feed and of its board. */
export function liveMetrics(feed: EventFeed): MetricSource {
  return {
    definitions: Object.values(METRICS),
    collect(page) {
      const { board, size, refused, cut, missed } = feed;
      for (const [group, count] of Object.entries(board.counts)) page.family(METRICS.events).add(count, labelText({ group }));
      page.family(METRICS.folded).add(board.folded);
      page.family(METRICS.followers).add(size);
      page.family(METRICS.refused).add(refused);
      page.family(METRICS.cut).add(cut);
      page.family(METRICS.missed).add(missed);
    },
  };
}
