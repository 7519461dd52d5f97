/** SRT connections for Prometheus, in its text format (version 0.0.4). */
import type { LinkStatistics } from './link-reporter.ts';

/** Whoever has SRT connections. */
export interface SrtLinks {
  readonly direction: 'ingest' | 'playback' | 'push';
  statistics(): readonly LinkStatistics[];
}

/** As Prometheus wants it, the name of what counts up from the start of the connection ends with `_total`. */
type Metric = readonly [name: string, help: string, value: (link: LinkStatistics) => number];

const METRICS: readonly Metric[] = [
  ['rtt_seconds', 'Round trip', ({ rtt }) => rtt / 1000],
  ['sent_packets_total', 'Data packets sent', ({ sender }) => sender.packetsSent],
  ['sent_bytes_total', 'Payload sent, without retransmissions', ({ sender }) => sender.bytesSent],
  ['sent_retransmitted_packets_total', 'Data packets sent again', ({ sender }) => sender.packetsRetransmitted],
  ['sent_lost_packets_total', 'Data packets the peer reported missing', ({ sender }) => sender.packetsReportedLost],
  ['sent_late_packets_total', 'Data packets given up because their time was over', ({ sender }) => sender.packetsDroppedLate],
  ['sent_refused_packets_total', 'Data packets for which there was no room', ({ sender }) => sender.packetsRefused],
  ['received_packets_total', 'Data packets received', ({ receiver }) => receiver.packetsReceived],
  ['received_bytes_total', 'Payload handed out', ({ receiver }) => receiver.bytesDelivered],
  ['received_retransmitted_packets_total', 'Data packets received that were sent again', ({ receiver }) => receiver.packetsRetransmitted],
  ['received_lost_packets_total', 'Data packets found missing', ({ receiver }) => receiver.packetsLost],
  ['received_late_packets_total', 'Data packets that did not come in time', ({ receiver }) => receiver.packetsDroppedLate],
  ['received_undecryptable_packets_total', 'Data packets without a usable key', ({ receiver }) => receiver.packetsUndecryptable],
];

/** All connections, one line for each figure of each; those that are gone are not listed any more. */
export function srtMetrics(sources: readonly SrtLinks[]): string {
  const links = sources.flatMap((source) => source.statistics().map((link) => ({ labels: labelsOf(source.direction, link), link })));
  const lines: string[] = [];
  for (const [name, help, value] of METRICS) {
    const type = name.endsWith('_total') ? 'counter' : 'gauge';
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
