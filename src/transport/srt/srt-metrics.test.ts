import { expect, test } from 'vitest';
import { metricsText } from '../../../test/fakes/metrics-text.ts';
import { newReceiverStatistics, newSenderStatistics } from '../../wire/srt/statistics.ts';
import type { LinkStatistics } from './link-reporter.ts';
import { srtMetrics } from './srt-metrics.ts';

function link(stream: string, session: string, rtt: number): LinkStatistics {
  return {
    ...{ session, peer: '192.0.2.7:1234', vhost: 'default', app: 'app', stream, rtt, malformed: 0 },
    sender: { ...newSenderStatistics(), packetsSent: 12, packetsReportedLost: 3, packetsRetransmitted: 2, packetsDroppedLate: 1 },
    receiver: { ...newReceiverStatistics(), packetsReceived: 100, packetsLost: 7 },
  };
}

test('every connection has metrics, labelled with its stream or viewer', () => {
  const source = srtMetrics([
    { direction: 'ingest', statistics: () => [link('live', '1', 20)] },
    { direction: 'playback', statistics: () => [link('live', '1', 35.5), link('a"b\\c\nd', '2', 1)] },
    { direction: 'push', statistics: () => [] },
  ]);
  const text = metricsText(source);
  const rtt = text.split('\n').filter((line) => line.includes('millrace_srt_rtt_seconds'));
  expect(rtt).toEqual([
    '# HELP millrace_srt_rtt_seconds Round trip',
    '# TYPE millrace_srt_rtt_seconds gauge',
    'millrace_srt_rtt_seconds{direction="ingest",vhost="default",app="app",stream="live",session="1"} 0.02',
    'millrace_srt_rtt_seconds{direction="playback",vhost="default",app="app",stream="live",session="1"} 0.0355',
    'millrace_srt_rtt_seconds{direction="playback",vhost="default",app="app",stream="a\\"b\\\\c\\nd",session="2"} 0.001',
  ]);
  const ingest = Object.fromEntries(
    [...text.matchAll(/^millrace_srt_(\w+)\{direction="ingest"[^}]*\} (.*)$/gm)].map(([, name, value]) => [name, Number(value)]),
  );
  expect(ingest).toMatchObject({
    sent_packets_total: 12,
    sent_lost_packets_total: 3,
    sent_retransmitted_packets_total: 2,
    sent_late_packets_total: 1,
    received_packets_total: 100,
    received_lost_packets_total: 7,
  });
  expect(text).not.toContain('192.0.2.7');
  // The format wants every name described once, and each line ended.
  expect(text.match(/^# TYPE /gm)).toHaveLength(new Set(text.match(/^# TYPE \S+/gm)).size);
  expect(text.endsWith('\n')).toBe(true);
});

test('services with connections share the metrics of one page', () => {
  const pushes = srtMetrics([{ direction: 'push', statistics: () => [link('live', '3', 40)] }]);
  const viewers = srtMetrics([{ direction: 'playback', statistics: () => [link('live', '1', 20)] }]);
  const text = metricsText({
    *collect(page) {
      for (const source of [pushes, viewers]) yield* source.collect(page) ?? [];
    },
  });
  expect(text.match(/^# TYPE /gm)).toHaveLength(new Set(text.match(/^# TYPE \S+/gm)).size);
  expect(text.match(/^millrace_srt_rtt_seconds\{direction="\w+"/gm)).toEqual([
    'millrace_srt_rtt_seconds{direction="push"',
    'millrace_srt_rtt_seconds{direction="playback"',
  ]);
});
