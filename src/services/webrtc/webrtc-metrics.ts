/** Metrics of WebRTC: reports of viewers, losses of publishers, drops of the media ports. */
import { type StreamAddress, streamKey } from '../../core/stream-address.ts';
import { OTHER_STREAMS, streamLabels } from '../../core/stream-labels.ts';
import { MetricSeries, type SeriesDefinition } from '../../util/metric-series.ts';
import { Histogram, type MetricDefinition, type MetricSource, type MetricsPage } from '../../util/metrics.ts';
import type { TransportCounters } from './transport/transport-report.ts';

const ROUND_TRIP_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const LOSS_BOUNDS = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
const MAX_STREAMS_AT_ONCE = 20;

/** Figures of all viewers of an output stream, including departed viewers. */
export interface ViewerTotals {
  readonly packets: number;
  readonly lost: number;
  readonly nacked: number;
  readonly resent: number;
  readonly keyframeRequests: number;
  /** The longest of the present viewers, seconds; undefined before a report. */
  readonly roundTrip: number | undefined;
  /** The smallest, bits per second; undefined before the first. */
  readonly estimate: number | undefined;
}

/** Figures of the publisher of a stream. */
export interface PublisherTotals {
  readonly received: number;
  readonly lost: number;
  readonly recovered: number;
  readonly requested: number;
  readonly keyframeRequests: number;
}

/** Distributions from viewers' reports. */
export class ViewerReports {
  readonly roundTrips = new Histogram(ROUND_TRIP_BOUNDS);
  /** Shares of packets lost since the report before. */
  readonly losses = new Histogram(LOSS_BOUNDS);
}

/** Owners of the figures; null if missing. */
export interface WebrtcFigures {
  readonly transport: () => TransportCounters & { readonly sessions: number };
  readonly viewers: { readonly reports: ViewerReports; totals(): Iterable<readonly [StreamAddress, ViewerTotals]> } | null;
  readonly publishers: { totals(): Iterable<readonly [StreamAddress, PublisherTotals]> } | null;
}

const series = <T>(name: string, help: string, value: (item: T) => number | undefined, others?: 'max' | 'none'): SeriesDefinition<T> => ({
  ...{ name: `millrace_webrtc_${name}`, help, value },
  type: name.endsWith('_total') ? 'counter' : 'gauge',
  ...(others !== undefined && { others }),
});

const VIEWERS: readonly SeriesDefinition<ViewerTotals>[] = [
  series('sent_packets_total', 'RTP packets sent to the viewers of an output stream', ({ packets }) => packets),
  series('lost_packets_total', 'RTP packets that the viewers of an output stream report lost, repaired or not', ({ lost }) => lost),
  series('nacked_packets_total', 'RTP packets that the viewers of an output stream requested again', ({ nacked }) => nacked),
  series('resent_packets_total', 'RTP packets sent again to the viewers of an output stream', ({ resent }) => resent),
  series(
    'viewer_keyframe_requests_total',
    'Keyframes that the viewers of an output stream requested',
    ({ keyframeRequests }) => keyframeRequests,
  ),
  series('longest_rtt_seconds', 'The longest round trip to a viewer of an output stream', ({ roundTrip }) => roundTrip, 'max'),
  series(
    'least_bandwidth_estimate_bytes_per_second',
    'Bandwidth of the slowest path to a viewer of an output stream, estimated by the viewer or the server',
    ({ estimate }) => (estimate === undefined ? undefined : estimate / 8),
    'none',
  ),
];

const PUBLISHERS: readonly SeriesDefinition<PublisherTotals>[] = [
  series('received_packets_total', 'RTP packets from the publisher of a stream', ({ received }) => received),
  series('received_lost_packets_total', 'RTP packets of the publisher of a stream that stayed lost', ({ lost }) => lost),
  series(
    'received_recovered_packets_total',
    'RTP packets of the publisher of a stream that were lost and sent again',
    ({ recovered }) => recovered,
  ),
  series(
    'requested_packets_total',
    'RTP packets that the server requested again from the publisher of a stream',
    ({ requested }) => requested,
  ),
  series(
    'publisher_keyframe_requests_total',
    'Keyframes that the server requested from the publisher of a stream',
    ({ keyframeRequests }) => keyframeRequests,
  ),
];

const metric = (type: MetricDefinition['type'], name: string, help: string): MetricDefinition => ({
  type,
  name: `millrace_webrtc_${name}`,
  help,
});

const ROUND_TRIP = metric('histogram', 'rtt_seconds', 'Round trips to viewers, one for each of their reports');
const LOSS = metric('histogram', 'loss_ratio', 'Share of packets lost on the way to a viewer, one for each of its reports');
const PEERS = metric('gauge', 'peers', 'Viewers and publishers, those that still connect included');

const TRANSPORT: readonly (readonly [keyof TransportCounters, MetricDefinition])[] = [
  ['datagramsSent', metric('counter', 'sent_datagrams_total', 'Datagrams sent by the media ports')],
  ['sendErrors', metric('counter', 'send_errors_total', 'Datagrams that the system refused to send')],
  ['congested', metric('counter', 'congested_datagrams_total', 'Datagrams given up because the socket stayed full')],
  ['droppedFrames', metric('counter', 'dropped_frames_total', 'Frames given up because a sender thread fell behind')],
  ['lostTooOld', metric('counter', 'unavailable_packets_total', 'Lost packets that viewers requested too late to be sent again')],
  ['ignoredNacks', metric('counter', 'ignored_nacks_total', 'Reports of losses left out because a sender thread fell behind')],
  ['nacks', metric('counter', 'nacks_total', 'Reports of losses from viewers (NACK)')],
  ['datagramsReceived', metric('counter', 'received_datagrams_total', 'Datagrams received by the media ports')],
  ['strangers', metric('counter', 'stranger_datagrams_total', 'Datagrams of no known peer or protocol')],
  ['droppedEvents', metric('counter', 'dropped_events_total', 'Datagrams dropped because the main thread fell behind')],
  [
    'turnedAway',
    metric(
      'counter',
      'turned_away_total',
      'Sessions and connections refused by a limit: too many of one address, or too many that were not completed',
    ),
  ],
];

/** Figures of the media ports, of viewers by output stream, of publishers by stream. */
export function webrtcMetrics({ transport, viewers, publishers }: WebrtcFigures): MetricSource {
  const ofViewers = new MetricSeries(VIEWERS, OTHER_STREAMS);
  const ofPublishers = new MetricSeries(PUBLISHERS, OTHER_STREAMS);
  return {
    definitions: [PEERS, ROUND_TRIP, LOSS, ...TRANSPORT.map(([, definition]) => definition), ...VIEWERS, ...PUBLISHERS],
    *collect(page) {
      const counters = transport();
      page.family(PEERS).add(counters.sessions);
      for (const [name, definition] of TRANSPORT) page.family(definition).add(counters[name]);
      if (viewers !== null) {
        page.family(ROUND_TRIP).addHistogram(viewers.reports.roundTrips);
        page.family(LOSS).addHistogram(viewers.reports.losses);
        yield* told(page, ofViewers, viewers.totals());
      }
      if (publishers !== null) yield* told(page, ofPublishers, publishers.totals());
    },
  };
}

function* told<T>(page: MetricsPage, of: MetricSeries<T>, totals: Iterable<readonly [StreamAddress, T]>): Iterable<void> {
  of.begin(page);
  let count = 0;
  for (const [address, item] of totals) {
    of.add(item, streamLabels(page, address), streamKey(address));
    count += 1;
    if (count % MAX_STREAMS_AT_ONCE === 0) yield;
  }
  of.end();
}
