/** Live events for Prometheus, in its text format (version 0.0.4). */
import type { LiveFeed } from './live-feed.ts';

/** Figures of the feed and of its board. */
export function liveMetrics({ board, size, refused, cut, missed }: LiveFeed): string {
  const groups = Object.entries(board.counts).map(([group, count]) => `millrace_events_total{group="${group}"} ${count}`);
  return `# HELP millrace_events_total What has happened, as GET /v1/events tells it
# TYPE millrace_events_total counter
${groups.join('\n')}
# HELP millrace_events_folded_total Sessions and refusals told as part of a sum
# TYPE millrace_events_folded_total counter
millrace_events_folded_total ${board.folded}
# HELP millrace_event_followers Clients of GET /v1/events
# TYPE millrace_event_followers gauge
millrace_event_followers ${size}
# HELP millrace_event_followers_refused_total Those that found no room
# TYPE millrace_event_followers_refused_total counter
millrace_event_followers_refused_total ${refused}
# HELP millrace_event_followers_cut_total Those that took nothing for too long
# TYPE millrace_event_followers_cut_total counter
millrace_event_followers_cut_total ${cut}
# HELP millrace_events_missed_total Events that followers were told a gap for, because they were behind
# TYPE millrace_events_missed_total counter
millrace_events_missed_total ${missed}
`;
}
