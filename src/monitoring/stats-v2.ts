import type { ProviderKind, PublisherKind } from '../core/kinds.ts';
import { formatTimestamp } from '../util/timestamp.ts';
import { publisherConnections } from './stats-v1.ts';
import type { TrafficFigures } from './traffic-figures.ts';

/** Version 2 statistics: the figures of version 1 divided by direction, plus ingest connections by provider. */
export interface StatisticsV2 {
  readonly createdTime: string;
  readonly lastUpdatedTime: string;
  readonly providers: {
    readonly avgThroughputIn: number;
    readonly connections: Record<ProviderKind, number>;
    readonly lastRecvTime: string;
    readonly lastThroughputIn: number;
    readonly maxThroughputIn: number;
    readonly totalBytesIn: number;
  };
  readonly publishers: {
    readonly avgThroughputOut: number;
    readonly connections: Record<PublisherKind, number>;
    readonly lastSentTime: string;
    readonly lastThroughputOut: number;
    readonly maxThroughputOut: number;
    readonly maxTotalConnectionTime: string;
    readonly maxTotalConnections: number;
    readonly totalBytesOut: number;
    readonly totalConnections: number;
  };
}

/** Serialises counters as version 2 of the statistics API. */
export function statisticsV2(traffic: TrafficFigures): StatisticsV2 {
  return {
    createdTime: formatTimestamp(traffic.createdAt),
    lastUpdatedTime: formatTimestamp(traffic.updatedAt),
    providers: {
      avgThroughputIn: traffic.in.avg,
      connections: providerConnections(traffic.ingests),
      lastRecvTime: formatTimestamp(traffic.in.lastAt),
      lastThroughputIn: traffic.in.last,
      maxThroughputIn: traffic.in.max,
      totalBytesIn: traffic.in.total,
    },
    publishers: {
      avgThroughputOut: traffic.out.avg,
      connections: publisherConnections(traffic.sessions),
      lastSentTime: formatTimestamp(traffic.out.lastAt),
      lastThroughputOut: traffic.out.last,
      maxThroughputOut: traffic.out.max,
      maxTotalConnectionTime: formatTimestamp(traffic.maxTotalSessionsAt),
      maxTotalConnections: traffic.maxTotalSessions,
      totalBytesOut: traffic.out.total,
      totalConnections: traffic.totalSessions,
    },
  };
}

function providerConnections(ingests: Readonly<Record<ProviderKind, number>>): Record<ProviderKind, number> {
  return {
    file: ingests.file,
    mpegts: ingests.mpegts,
    multiplex: ingests.multiplex,
    ovt: ingests.ovt,
    rtmp: ingests.rtmp,
    rtsp: ingests.rtsp,
    rtsppull: ingests.rtsppull,
    scheduled: ingests.scheduled,
    srt: ingests.srt,
    webrtc: ingests.webrtc,
  };
}
