import type { PublisherKind } from '../core/kinds.ts';
import { formatTimestamp } from '../util/timestamp.ts';
import type { TrafficFigures } from './traffic-figures.ts';

/** `connections` by publisher; members in byte order so that the writer need not sort. */
export function publisherConnections(sessions: Readonly<Record<PublisherKind, number>>): Record<PublisherKind, number> {
  return {
    file: sessions.file,
    hlsv3: sessions.hlsv3,
    llhls: sessions.llhls,
    ovt: sessions.ovt,
    push: sessions.push,
    srt: sessions.srt,
    thumbnail: sessions.thumbnail,
    webrtc: sessions.webrtc,
  };
}

/** Version 1 statistics: byte counters in bytes, `last*` in bytes per interval, `avg*` and `max*` in bits per second. */
export interface StatisticsV1 {
  readonly avgThroughputIn: number;
  readonly avgThroughputOut: number;
  readonly connections: Record<PublisherKind, number>;
  readonly createdTime: string;
  readonly lastRecvTime: string;
  readonly lastSentTime: string;
  readonly lastThroughputIn: number;
  readonly lastThroughputOut: number;
  readonly lastUpdatedTime: string;
  readonly maxThroughputIn: number;
  readonly maxThroughputOut: number;
  readonly maxTotalConnectionTime: string;
  readonly maxTotalConnections: number;
  readonly totalBytesIn: number;
  readonly totalBytesOut: number;
  readonly totalConnections: number;
}

/** Serialises counters as version 1 of the statistics API. */
export function statisticsV1(traffic: TrafficFigures): StatisticsV1 {
  return {
    avgThroughputIn: traffic.in.avg,
    avgThroughputOut: traffic.out.avg,
    connections: publisherConnections(traffic.sessions),
    createdTime: formatTimestamp(traffic.createdAt),
    lastRecvTime: formatTimestamp(traffic.in.lastAt),
    lastSentTime: formatTimestamp(traffic.out.lastAt),
    lastThroughputIn: traffic.in.last,
    lastThroughputOut: traffic.out.last,
    lastUpdatedTime: formatTimestamp(traffic.updatedAt),
    maxThroughputIn: traffic.in.max,
    maxThroughputOut: traffic.out.max,
    maxTotalConnectionTime: formatTimestamp(traffic.maxTotalSessionsAt),
    maxTotalConnections: traffic.maxTotalSessions,
    totalBytesIn: traffic.in.total,
    totalBytesOut: traffic.out.total,
    totalConnections: traffic.totalSessions,
  };
}
