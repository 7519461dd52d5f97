/** The reports of a server for its API: figures, their history, events and the log. */
import { admissionMetrics } from '../access/admission-metrics.ts';
import { type EventFeed, LiveFeed, type LogFeed } from '../api/live/live-feed.ts';
import { liveMetrics } from '../api/live/live-metrics.ts';
import type { ApiParts } from '../api/start-api.ts';
import { originMapMetrics } from '../cluster/origin-map-metrics.ts';
import { httpMetrics } from '../delivery/pool/http-metrics.ts';
import { alertMetrics } from '../hooks/alert/alert-metrics.ts';
import type { Alerts } from '../hooks/alert/alerts.ts';
import { type EventLog, eventLogMetrics } from '../monitoring/event-log.ts';
import { EventLoopWatch } from '../monitoring/event-loop-watch.ts';
import { FigureHistory } from '../monitoring/figure-history.ts';
import { MetricsCollector } from '../monitoring/metrics-collector.ts';
import { newcomerMetrics } from '../monitoring/newcomer-metrics.ts';
import { processMetrics } from '../monitoring/process-metrics.ts';
import type { ServerLog } from '../monitoring/server-log.ts';
import { StreamHistory } from '../monitoring/stream-history.ts';
import { streamMetrics } from '../monitoring/stream-metrics.ts';
import type { ServiceContext } from '../services/service.ts';
import type { LogLevel } from '../util/gated-lines.ts';
import { gitRevision } from '../util/git-revision.ts';
import { packageVersion } from '../util/package-version.ts';
import type { ServerCore } from './server-core.ts';
import type { ServiceList } from './service-list.ts';

/** Each may ask for a thousand lines at once. */
const MAX_LOG_FOLLOWERS = 8;

/** Parts of the server that the API changes or reports. */
export interface ServerApiOptions
  extends Pick<ApiParts, 'recordings' | 'dumps' | 'pushes' | 'schedules' | 'multiplex' | 'reading' | 'health' | 'drain' | 'accessToken'> {
  readonly core: Pick<ServerCore, 'access' | 'transcoder' | 'webhooks'>;
  readonly context: ServiceContext;
  readonly services: ServiceList;
  readonly log: ServerLog;
  readonly setLevel: (level: LogLevel) => void;
  /** Lines that could not be written. */
  readonly logDropped: () => number;
  readonly alerts: Alerts;
  readonly eventLog: EventLog | null;
}

/** The API before its ports are open. */
export interface ServerApi {
  readonly parts: ApiParts;
  /** Its owner stops them. */
  readonly watches: readonly { stop(): void }[];
  /** Followers of the server and its log; their owner closes them. */
  readonly feeds: readonly { close(): void }[];
}

/** Collects what the API needs, and begins to keep the history of figures. */
export function serverApi(options: ServerApiOptions): ServerApi {
  const { core, context, services, log, setLevel, logDropped, alerts, eventLog, ...given } = options;
  const { config, clock, conditions, logger, orchestrator, pulls, writing, limits, openings, timeoutScale } = context;
  const { certificates, delivery, originMaps } = context;
  const { access, transcoder, webhooks } = core;
  const { lines, notices, tail } = log;
  const live: EventFeed = new LiveFeed({ board: notices, logger: logger.child({ part: 'api' }) });
  const logs: LogFeed = new LiveFeed({ board: tail, logger: logger.child({ part: 'api' }), maxFollowers: MAX_LOG_FOLLOWERS });
  const eventLoop = new EventLoopWatch(clock);
  const history = new FigureHistory(clock, orchestrator.meter);
  const streamHistory = new StreamHistory(clock, orchestrator);
  history.start();
  streamHistory.start();
  const metrics = [
    processMetrics({ version: packageVersion(), revision: gitRevision(), eventLoop, conditions, logDropped }),
    newcomerMetrics(limits.newcomers),
    originMapMetrics(() => originMaps.figures),
    streamMetrics(orchestrator),
    transcoder.metrics,
    ...services.all.flatMap((service) => service.metrics ?? []),
    access.refusals,
    admissionMetrics(() => [...webhooks.figures, ...delivery.controlServers]),
    httpMetrics(delivery),
    liveMetrics(live),
    alertMetrics(() => alerts.figures),
    eventLogMetrics(() => eventLog?.figures ?? null),
  ];
  return {
    parts: {
      ...given,
      ...{ orchestrator, pulls, writing, limits, openings, logger, timeoutScale },
      readers: () => delivery.readFeeds,
      reloadCertificates: (virtualHosts) => certificates.reload(virtualHosts),
      codecModules: () => transcoder.codecModules(),
      logLevel: { get: () => lines.level, set: setLevel },
      keyUsedAt: (grant) => access.keys.usedAt(grant),
      ...{ live, logs, history, streamHistory },
      metrics: new MetricsCollector(metrics, config.managers.metrics.maxStreams),
    },
    watches: [history, streamHistory, eventLoop],
    feeds: [live, logs],
  };
}
