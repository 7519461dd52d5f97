/** SRT connections for Prometheus, in its text format (version 0.0.4). */
import type { LinkStatistics } from '../protocols/srt/link-reporter.ts';

/** Whoever has SRT connections. */
export interface SrtLinks {
  readonly direction: 'ingest' | 'playback' | 'push';
  statistics(): readonly LinkStatistics[];
}

interface Metric {
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  readonly value: (link: LinkStatistics) => number;
}

const METRICS: readonly Metric[] = [
  { name: 'rtt_seconds', type: 'gauge', help: 'Round trip', value: ({ rtt }) => rtt / 1000 },
  { name: 'sent_packets_total', type: 'counter', help: 'Data packets sent', value: ({ sender }) => sender.packetsSent },
  { name: 'sent_bytes_total', type: 'counter', help: 'Payload sent, without retransmissions', value: ({ sender }) => sender.bytesSent },
  {
    name: 'sent_retransmitted_packets_total',
    type: 'counter',
    help: 'Data packets sent again',
    value: ({ sender }) => sender.packetsRetransmitted,
  },
  {
    name: 'sent_lost_packets_total',
    type: 'counter',
    help: 'Data packets the peer reported missing',
    value: ({ sender }) => sender.packetsReportedLost,
  },
  {
    name: 'sent_late_packets_total',
    type: 'counter',
    help: 'Data packets given up because their time was over',
    value: ({ sender }) => sender.packetsDroppedLate,
  },
  {
    name: 'sent_refused_packets_total',
    type: 'counter',
    help: 'Data packets for which there was no room',
    value: ({ sender }) => sender.packetsRefused,
  },
  { name: 'received_packets_total', type: 'counter', help: 'Data packets received', value: ({ receiver }) => receiver.packetsReceived },
  { name: 'received_bytes_total', type: 'counter', help: 'Payload handed out', value: ({ receiver }) => receiver.bytesDelivered },
  {
    name: 'received_retransmitted_packets_total',
    type: 'counter',
    help: 'Data packets received that were sent again',
    value: ({ receiver }) => receiver.packetsRetransmitted,
  },
  {
    name: 'received_lost_packets_total',
    type: 'counter',
    help: 'Data packets found missing',
    value: ({ receiver }) => receiver.packetsLost,
  },
  {
    name: 'received_late_packets_total',
    type: 'counter',
    help: 'Data packets that did not come in time',
    value: ({ receiver }) => receiver.packetsDroppedLate,
  },
  {
    name: 'received_undecryptable_packets_total',
    type: 'counter',
    help: 'Data packets without a usable key',
    value: ({ receiver }) => receiver.packetsUndecryptable,
  },
];

/** All connections, one line for each figure of each; those that are gone are not listed any more. */
export function srtMetrics(sources: readonly SrtLinks[]): string {
  const links = sources.flatMap(({ direction, statistics }) => statistics().map((link) => ({ labels: labelsOf(direction, link), link })));
  const lines: string[] = [];
  for (const { name, type, help, value } of METRICS) {
    lines.push(`# HELP millrace_srt_${name} ${help}`, `# TYPE millrace_srt_${name} ${type}`);
    for (const { labels, link } of links) lines.push(`millrace_srt_${name}{${labels}} ${value(link)}`);
  }
  return `${lines.join('\n')}\n`;
}

function labelsOf(direction: SrtLinks['direction'], { vhost, app, stream, session }: LinkStatistics): string {
  return Object.entries({ direction, vhost, app, stream, session })
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(',');
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
