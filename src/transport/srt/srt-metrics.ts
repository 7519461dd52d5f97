/** SRT connections for Prometheus. */
import { streamKey } from '../../core/stream-address.ts';
import { OTHERS, streamLabels } from '../../core/stream-labels.ts';
import { LabelSlots } from '../../util/label-slots.ts';
import { MetricSeries, type SeriesDefinition } from '../../util/metric-series.ts';
import { labelText, type MetricSource } from '../../util/metrics.ts';
import type { LinkStatistics } from './link-reporter.ts';

const DIRECTIONS = ['ingest', 'playback', 'push'] as const;

/** An owner of SRT connections. */
export interface SrtLinks {
  readonly direction: (typeof DIRECTIONS)[number];
  statistics(): readonly LinkStatistics[];
}

/** As Prometheus requires, the names of counters end with `_total`; they count from the start of the connection. */
type Metric = readonly [name: string, help: string, value: (link: LinkStatistics) => number];

const METRICS: readonly Metric[] = [
  ['rtt_seconds', 'Round trip', ({ rtt }) => rtt / 1000],
  ['sent_packets_total', 'Data packets sent', ({ sender }) => sender.packetsSent],
  ['sent_bytes_total', 'Payload sent, without retransmissions', ({ sender }) => sender.bytesSent],
  ['sent_retransmitted_packets_total', 'Data packets sent again', ({ sender }) => sender.packetsRetransmitted],
  ['sent_lost_packets_total', 'Data packets the peer reported missing', ({ sender }) => sender.packetsReportedLost],
  ['sent_late_packets_total', 'Data packets not sent again because their latency was over', ({ sender }) => sender.packetsDroppedLate],
  ['sent_refused_packets_total', 'Data packets dropped because the send buffer was full', ({ sender }) => sender.packetsRefused],
  ['received_packets_total', 'Data packets received', ({ receiver }) => receiver.packetsReceived],
  ['received_bytes_total', 'Payload handed out', ({ receiver }) => receiver.bytesDelivered],
  ['received_retransmitted_packets_total', 'Data packets received that were sent again', ({ receiver }) => receiver.packetsRetransmitted],
  ['received_lost_packets_total', 'Data packets found missing', ({ receiver }) => receiver.packetsLost],
  ['received_late_packets_total', 'Data packets that did not arrive in time', ({ receiver }) => receiver.packetsDroppedLate],
  ['received_undecryptable_packets_total', 'Data packets without a usable key', ({ receiver }) => receiver.packetsUndecryptable],
];

/** Labels shared by connections whose streams have no labels of their own. */
const OTHER_LINKS = { vhost: '', app: '', stream: OTHERS, session: '' };
/** Limit of connections with their own labels: otherwise every viewer of a stream would add its series. */
const MAX_LINKS = 200;
/** Connections after which other work of the thread may run. */
const MAX_LINKS_AT_ONCE = 100;

/** All open connections of these owners, each with its own labels as long as there are free slots. Services that have some share the metrics. */
export function srtMetrics(sources: readonly SrtLinks[]): MetricSource {
  const definitions = METRICS.map(
    ([name, help, value]): SeriesDefinition<LinkStatistics> => ({
      ...{ name: `millrace_srt_${name}`, help, value },
      ...(name.endsWith('_total') ? { type: 'counter' } : { type: 'gauge', others: 'max' }),
    }),
  );
  const others = DIRECTIONS.map((direction) => labelText({ direction, ...OTHER_LINKS }));
  const series = new Map(DIRECTIONS.map((direction, n) => [direction, new MetricSeries(definitions, others[n] ?? '')]));
  const slots = new LabelSlots(MAX_LINKS);
  return {
    definitions,
    *collect(page) {
      slots.begin();
      for (const each of series.values()) each.begin(page);
      let count = 0;
      for (const { direction, statistics } of sources) {
        for (const link of statistics()) {
          const { vhost, app, stream, session } = link;
          const hasRoom = streamLabels(page, link) !== null;
          const key = `${direction} ${session} ${streamKey(link)}`;
          const labels = hasRoom ? slots.of(key, () => labelText({ direction, vhost, app, stream, session })) : null;
          series.get(direction)?.add(link, labels, key);
          count += 1;
          if (count % MAX_LINKS_AT_ONCE === 0) yield;
        }
      }
      for (const each of series.values()) each.end();
      slots.end();
    },
  };
}
