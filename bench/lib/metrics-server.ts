/**
 * The API on a real core with a given number of live streams, each with viewers over WebRTC and LL-HLS, and SRT connections: prints its
 * port.
 */

import type { ControlPlane } from '../../src/api/control.ts';
import { PublisherKind } from '../../src/core/kinds.ts';
import { EventLoopWatch } from '../../src/monitoring/event-loop-watch.ts';
import { MetricsCollector } from '../../src/monitoring/metrics-collector.ts';
import { newcomerMetrics } from '../../src/monitoring/newcomer-metrics.ts';
import { processMetrics } from '../../src/monitoring/process-metrics.ts';
import { streamMetrics } from '../../src/monitoring/stream-metrics.ts';
import { PartTimeliness } from '../../src/services/hls/packager/fmp4/part-timeliness.ts';
import { ViewerReports, webrtcMetrics } from '../../src/services/webrtc/webrtc-metrics.ts';
import { srtMetrics } from '../../src/transport/srt/srt-metrics.ts';
import { systemClock } from '../../src/util/clock.ts';
import { newReceiverStatistics, newSenderStatistics } from '../../src/wire/srt/statistics.ts';
import { startApi } from '../../test/contract/harness.ts';

const [streams = 500] = process.argv.slice(2).map(Number);
const SRT_LINKS = 100;

const addresses = Array.from({ length: streams }, (_, index) => ({ vhost: 'default', app: 'app', stream: `stream-${index}` }));
const timeliness = new PartTimeliness(systemClock);
const parts = addresses.map((address) => timeliness.open(address));
const viewers = { packets: 1_000_000, lost: 123, nacked: 100, resent: 99, keyframeRequests: 3, roundTrip: 0.0234, estimate: 4_200_000 };
const counters = {
  ...{
    viewers: 0,
    datagramsSent: 1,
    sendCalls: 1,
    sendErrors: 0,
    congested: 0,
    droppedFrames: 0,
    resent: 0,
    lostTooOld: 0,
    ignoredNacks: 0,
  },
  ...{
    datagramsReceived: 1,
    strangers: 0,
    nacks: 0,
    droppedEvents: 0,
    droppedStrangers: 0,
    droppedInjected: 0,
    malformed: 0,
    turnedAway: 0,
  },
};
const links = addresses.slice(0, SRT_LINKS).map((address, index) => ({
  ...{ ...address, session: String(index), peer: '', rtt: 20, malformed: 0 },
  ...{ sender: newSenderStatistics(), receiver: newReceiverStatistics() },
}));

const control: { metrics?: MetricsCollector } = {};
const api = await startApi({ control: control as ControlPlane });
control.metrics = new MetricsCollector(
  [
    processMetrics({
      version: '0',
      revision: '',
      eventLoop: new EventLoopWatch(systemClock),
      conditions: { reasons: [] },
      logDropped: () => 0,
    }),
    newcomerMetrics({ size: 0, refused: 0 }),
    streamMetrics(api.orchestrator),
    srtMetrics([{ direction: 'playback', statistics: () => links }]),
    timeliness,
    webrtcMetrics({
      transport: () => ({ ...counters, sessions: streams }),
      viewers: { reports: new ViewerReports(), totals: () => addresses.map((address) => [address, viewers] as const) },
      publishers: null,
    }),
  ],
  streams,
);
for (const { stream } of addresses) {
  await api.publish('default', 'app', stream);
  const { meter } = api.orchestrator.application('default', 'app')?.stream(stream) ?? {};
  for (const kind of [PublisherKind.LLHLS, PublisherKind.WEBRTC]) meter?.connect(kind);
}
for (const stream of parts) stream.part(1, 1, true);
console.log(`port ${api.port}`);
