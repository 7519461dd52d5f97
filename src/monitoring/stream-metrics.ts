/** Traffic of the server, its applications and its streams, as Prometheus metrics. */
import type { Application } from '../core/application.ts';
import type { InboundStream } from '../core/inbound-stream.ts';
import { ProviderKind, PublisherKind } from '../core/kinds.ts';
import type { QueueRegistry } from '../core/queue-registry.ts';
import { applicationLabels, OTHER_APPLICATIONS, OTHER_STREAMS, streamLabels } from '../core/stream-labels.ts';
import type { TrackMeter } from '../core/track-meter.ts';
import type { TrafficMeter } from '../core/traffic-meter.ts';
import { MetricSeries, type SeriesDefinition } from '../util/metric-series.ts';
import type { MetricDefinition, MetricSource, MetricsPage } from '../util/metrics.ts';

/** The parts of the server that the metrics read. */
export interface MeteredServer {
  readonly meter: TrafficMeter;
  readonly queues: QueueRegistry;
  readonly virtualHosts: readonly { readonly name: string; readonly applications: ReadonlyMap<string, Application> }[];
}

/** Number of streams after which other work of the thread may run. */
const MAX_STREAMS_AT_ONCE = 50;
const PUBLISHERS = Object.values(PublisherKind);
const PROVIDERS = Object.values(ProviderKind);

const SERVER: readonly SeriesDefinition<TrafficMeter>[] = [
  { name: 'millrace_received_bytes_total', help: 'Bytes from all sources', type: 'counter', value: (meter) => meter.in.total },
  { name: 'millrace_sent_bytes_total', help: 'Bytes to all viewers, pushes and files', type: 'counter', value: (meter) => meter.out.total },
];

const METRICS = {
  sessions: { name: 'millrace_sessions', help: 'Viewers, pushes and recordings now, by protocol', type: 'gauge' },
  sources: { name: 'millrace_sources', help: 'Sources that bring streams now, by protocol', type: 'gauge' },
  applications: { name: 'millrace_applications', help: 'Applications', type: 'gauge' },
  streams: { name: 'millrace_streams', help: 'Streams that have begun', type: 'gauge' },
  applicationSessions: {
    name: 'millrace_application_sessions',
    help: 'Viewers, pushes and recordings of an application now, by protocol; none where there is nobody',
    type: 'gauge',
  },
  streamSessions: {
    name: 'millrace_stream_sessions',
    help: 'Viewers, pushes and recordings of a stream now, by protocol; none where there is nobody',
    type: 'gauge',
  },
  queueDrops: {
    name: 'millrace_queue_dropped_total',
    help: 'Packets dropped by queues of a kind; KiB for queues of files, messages for queues of delivery threads',
    type: 'counter',
  },
  queueSize: {
    name: 'millrace_queue_size',
    help: 'Packets that wait in queues of a kind now; KiB for queues of files, messages for queues of delivery threads',
    type: 'gauge',
  },
} as const satisfies Record<string, MetricDefinition>;

const APPLICATION: readonly SeriesDefinition<Application>[] = [
  {
    name: 'millrace_application_received_bytes_total',
    help: 'Bytes from the sources of an application',
    type: 'counter',
    value: ({ meter }) => meter.in.total,
  },
  {
    name: 'millrace_application_sent_bytes_total',
    help: 'Bytes to the viewers, pushes and files of an application',
    type: 'counter',
    value: ({ meter }) => meter.out.total,
  },
  {
    name: 'millrace_application_streams',
    help: 'Streams of an application that have begun',
    type: 'gauge',
    value: ({ streams }) => streams.length,
  },
];

const STREAM: readonly SeriesDefinition<InboundStream>[] = [
  {
    name: 'millrace_stream_received_bytes_total',
    help: 'Bytes from the source of a stream',
    type: 'counter',
    value: ({ meter }) => meter.in.total,
  },
  {
    name: 'millrace_stream_sent_bytes_total',
    help: 'Bytes to the viewers, pushes and files of a stream',
    type: 'counter',
    value: ({ meter }) => meter.out.total,
  },
  {
    name: 'millrace_stream_received_packets_total',
    help: 'Packets of media (video frames, audio frames, data) from the source of a stream',
    type: 'counter',
    value: ({ packetsIn }) => packetsIn,
  },
  {
    name: 'millrace_stream_output_packets_total',
    help: 'Packets of media handed to publishers, all output streams together',
    type: 'counter',
    value: ({ outputs }) => outputs.reduce((sum, { packetsOut }) => sum + packetsOut, 0),
  },
  {
    name: 'millrace_stream_start_time_seconds',
    help: 'When a stream began, seconds since the epoch of Unix',
    type: 'gauge',
    others: 'none',
    value: ({ createdAt }) => createdAt / 1000,
  },
  {
    name: 'millrace_stream_source_connected',
    help: 'Whether a stream has its source: 1, or 0 while it waits for one; for streams without labels their number with a source',
    type: 'gauge',
    value: ({ source }) => (source.present ? 1 : 0),
  },
  {
    name: 'millrace_stream_source_silence_seconds',
    help: 'Time since the source of a stream sent audio or video; for streams without labels the longest',
    type: 'gauge',
    others: 'max',
    value: ({ silence }) => silence / 1000,
  },
  {
    name: 'millrace_stream_source_changes_total',
    help: 'Changes of the source of a stream, stand-ins included',
    type: 'counter',
    value: ({ source }) => source.changes,
  },
  {
    name: 'millrace_stream_video_frames_per_second',
    help: 'Frame rate of the first video track from the source, over its last second',
    type: 'gauge',
    others: 'none',
    value: (stream) => firstVideo(stream)?.framerateLatest,
  },
  {
    name: 'millrace_stream_keyframe_interval_seconds',
    help: 'Time between the last two keyframes of the first video track from the source; for streams without labels the longest',
    type: 'gauge',
    others: 'max',
    value: (stream) => {
      const seconds = firstVideo(stream)?.keyframeSeconds ?? Number.NaN;
      return Number.isNaN(seconds) ? undefined : seconds;
    },
  },
  {
    name: 'millrace_stream_stand_in_on_air',
    help: 'Whether viewers get the stand-in of a stream; only for streams that have one',
    type: 'gauge',
    value: ({ standIn }) => (standIn === null ? undefined : Number(standIn.onAir)),
  },
  {
    name: 'millrace_stream_stand_in_airings_total',
    help: 'How often the stand-in of a stream went on air; only for streams that have one',
    type: 'counter',
    value: ({ standIn }) => standIn?.airings,
  },
];

/** Figures of the whole server, then of its applications, then of their streams. */
export function streamMetrics(server: MeteredServer): MetricSource {
  const whole = new MetricSeries(SERVER, '');
  const ofApplications = new MetricSeries(APPLICATION, OTHER_APPLICATIONS);
  const ofStreams = new MetricSeries(STREAM, OTHER_STREAMS);
  return {
    definitions: [...SERVER, ...APPLICATION, ...STREAM, ...Object.values(METRICS)],
    *collect(page) {
      whole.begin(page);
      whole.add(server.meter, '', server.meter);
      tellWhole(server, page);
      const applications = server.virtualHosts.flatMap((vhost) => [...vhost.applications.values()]);
      page.family(METRICS.applications).add(applications.length);
      ofApplications.begin(page);
      ofStreams.begin(page);
      let count = 0;
      const otherSessions = { ofApplications: new Map<string, number>(), ofStreams: new Map<string, number>() };
      for (const application of applications) {
        const { vhost, name: app } = application;
        const own = applicationLabels(page, { vhost, app });
        ofApplications.add(application, own, application);
        if (own !== null) tellSessions(page, METRICS.applicationSessions, application.meter, own);
        else addSessions(otherSessions.ofApplications, application.meter);
        for (const stream of application.streams) {
          const labels = streamLabels(page, { vhost, app, stream: stream.name });
          ofStreams.add(stream, labels, stream);
          if (labels !== null) tellSessions(page, METRICS.streamSessions, stream.meter, labels);
          else addSessions(otherSessions.ofStreams, stream.meter);
          count += 1;
          if (count % MAX_STREAMS_AT_ONCE === 0) yield;
        }
      }
      ofApplications.end();
      ofStreams.end();
      for (const [protocol, sessions] of otherSessions.ofApplications)
        page.family(METRICS.applicationSessions).add(sessions, `${OTHER_APPLICATIONS},protocol="${protocol}"`);
      for (const [protocol, sessions] of otherSessions.ofStreams)
        page.family(METRICS.streamSessions).add(sessions, `${OTHER_STREAMS},protocol="${protocol}"`);
      page.family(METRICS.streams).add(count);
    },
  };
}

function tellWhole({ meter, queues }: MeteredServer, page: MetricsPage): void {
  for (const kind of PUBLISHERS) page.family(METRICS.sessions).add(meter.sessions[kind], `protocol="${kind}"`);
  for (const kind of PROVIDERS) page.family(METRICS.sources).add(meter.ingests[kind], `protocol="${kind}"`);
  for (const [kind, { size, drop }] of queues.totals) {
    page.family(METRICS.queueSize).add(size, `queue="${kind}"`);
    page.family(METRICS.queueDrops).add(drop, `queue="${kind}"`);
  }
}

function tellSessions(page: MetricsPage, metric: MetricDefinition, { sessions }: TrafficMeter, labels: string): void {
  for (const kind of PUBLISHERS) if (sessions[kind] > 0) page.family(metric).add(sessions[kind], `${labels},protocol="${kind}"`);
}

function addSessions(sums: Map<string, number>, { sessions }: TrafficMeter): void {
  for (const kind of PUBLISHERS) if (sessions[kind] > 0) sums.set(kind, (sums.get(kind) ?? 0) + sessions[kind]);
}

/** Null for a stream without video. */
function firstVideo(stream: InboundStream): TrackMeter | null {
  const track = stream.tracks.find(({ type }) => type === 'video');
  return track === undefined ? null : stream.figures(track.id);
}
