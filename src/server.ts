/** Puts the server together: load, core, services, applications, ports. What stops it is in the same order, backwards. */
import { availableParallelism } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { AccessControls, allChecks } from './access/access-controls.ts';
import { admissionMetrics } from './access/admission-metrics.ts';
import { AdmissionWebhooks } from './access/admission-webhooks.ts';
import { secretQueryKeys } from './access/secret-query-keys.ts';
import { tellDenied, tellFaults, tellRefusals } from './access/tell-denied.ts';
import { Health } from './api/health.ts';
import { pagesOf } from './api/listeners.ts';
import type { EventFeed, LogFeed } from './api/live/event-feed.ts';
import { LiveFeed } from './api/live/live-feed.ts';
import { liveMetrics } from './api/live/live-metrics.ts';
import { type ApiParts, startApi } from './api/start-api.ts';
import { startMetrics } from './api/start-metrics.ts';
import { originMapMetrics } from './cluster/origin-map-metrics.ts';
import { OriginMaps } from './cluster/origin-maps.ts';
import { bannerOf } from './config/banner.ts';
import { type ReadOptions, type ServerConfig, secretsOf } from './config/index.ts';
import { serverSentences } from './config/ineffective.ts';
import {
  definitionFolders,
  deliveryThreads,
  findConfigFile,
  readingFolders,
  watchedFolders,
  writingFolders,
} from './config/server-config.ts';
import { shortServerSecrets } from './config/short-secrets.ts';
import { Drain } from './core/drain.ts';
import type { CloseReason } from './core/ingest.ts';
import type { PublisherKind } from './core/kinds.ts';
import { Orchestrator } from './core/orchestrator.ts';
import { readOverlays } from './core/overlay-files.ts';
import { PortOpenings } from './core/port-openings.ts';
import { emptied, type Presence, presenceIn } from './core/presence.ts';
import type { Publisher } from './core/publishing.ts';
import type { PullSource } from './core/pull.ts';
import { PullRegistry } from './core/pull-registry.ts';
import { PullDocumentStore } from './core/pull-store.ts';
import { QueueRegistry } from './core/queue-registry.ts';
import { RestingSources } from './core/resting-sources.ts';
import { definitionOf, restorePulls, restoreVirtualHosts } from './core/restored-state.ts';
import { type Running, stopAll } from './core/running.ts';
import { StreamDemand } from './core/stream-demand.ts';
import { StreamLineage } from './core/stream-lineage.ts';
import { removingUnusedApplications } from './core/template-applications.ts';
import { openDeliveryPorts } from './delivery/delivery-ports.ts';
import { patientDeliveryLimits } from './delivery/pool/delivery-limits.ts';
import { DeliveryPool } from './delivery/pool/delivery-pool.ts';
import { servedHostOf } from './delivery/served-host.ts';
import { ServerLimits } from './delivery/server-limits.ts';
import { CertificateStore } from './delivery/tls/certificate-store.ts';
import { DefinitionFindings } from './findings/definition-findings.ts';
import { tellFindings } from './findings/findings.ts';
import { loadUsable } from './findings/usable-config.ts';
import { alertMetrics } from './hooks/alert/alert-metrics.ts';
import { startAlerts } from './hooks/alert/alerts.ts';
import { TranscodeWebhook } from './hooks/transcode-webhook.ts';
import { eventLogMetrics, startEventLog } from './monitoring/event-log.ts';
import { EventLoopWatch } from './monitoring/event-loop-watch.ts';
import { FigureHistory } from './monitoring/figure-history.ts';
import { MetricsCollector } from './monitoring/metrics-collector.ts';
import { newcomerMetrics } from './monitoring/newcomer-metrics.ts';
import { processMetrics } from './monitoring/process-metrics.ts';
import { serverLog } from './monitoring/server-log.ts';
import { streamMetrics } from './monitoring/stream-metrics.ts';
import { ChannelSources } from './playout/channel-sources.ts';
import { LiveStreams } from './playout/live-source.ts';
import { MediaRoot } from './playout/media-root.ts';
import { standInPlayers } from './playout/stand-in-player.ts';
import { ConfigReload } from './reload/config-reload.ts';
import { ConfigWatch } from './reload/config-watch.ts';
import type { ReloadFollowers, ReloadOutcome } from './reload/reload-outcome.ts';
import { startEvents } from './services/events/event-service.ts';
import { startFiles } from './services/file/file-service.ts';
import { startHls } from './services/hls/hls-service.ts';
import { startMpegts } from './services/mpegts/mpegts-service.ts';
import { startMultiplex } from './services/multiplex/multiplex-service.ts';
import { startOvt } from './services/ovt/ovt-service.ts';
import { startPushes } from './services/push/push-service.ts';
import { startRecordings } from './services/record/record-service.ts';
import { startRtmp } from './services/rtmp/rtmp-service.ts';
import { startRtsp } from './services/rtsp/rtsp-service.ts';
import { startSchedules } from './services/schedule/schedule-service.ts';
import type { Service, ServiceContext } from './services/service.ts';
import { startSrt } from './services/srt/srt-service.ts';
import { startThumbnails } from './services/thumbnail/thumbnail-service.ts';
import { startWebrtc } from './services/webrtc/webrtc-service.ts';
import { loadOrCreateAccessToken } from './state/access-token.ts';
import { ApiState } from './state/api-state.ts';
import { DiskWatch } from './state/disk-watch.ts';
import { KeyUses } from './state/key-uses.ts';
import { keepRunningConfig } from './state/running-config.ts';
import { StateLock } from './state/state-lock.ts';
import { StateStore } from './state/state-store.ts';
import { tellSandbox } from './transcoder/sandbox.ts';
import { TranscoderSupervisor } from './transcoder/supervisor.ts';
import { srtMetrics } from './transport/srt/srt-metrics.ts';
import { systemClock } from './util/clock.ts';
import { Conditions } from './util/conditions.ts';
import type { LeveledLines, LogLevel } from './util/gated-lines.ts';
import { gitRevision } from './util/git-revision.ts';
import type { LogLines } from './util/logger.ts';
import type { MetricSource } from './util/metrics.ts';
import { packageVersion } from './util/package-version.ts';
import type { Patience } from './util/patience.ts';

export { ConfigProblem } from './findings/config-problem.ts';
export type { ReloadOutcome } from './reload/reload-outcome.ts';

/** How a process runs its server; everything else is in the configuration file. */
export interface ServerOptions {
  /** Undefined: `conf/Server.xml`, else the configuration inside the package. */
  readonly configFile?: string | undefined;
  readonly stateFolder: string;
  /** Deletes what the API made in earlier runs; never recordings. Default: it is all there again. */
  readonly forgetApiState?: boolean;
  /** `dropped`: lines that could not be written and that no line has told of yet. */
  readonly logger: (LogLines | LeveledLines) & { readonly dropped?: number };
  /** Its level was asked for by whoever starts the server: that of the configuration does not count before it changes. */
  readonly keepLogLevel?: boolean;
  /** Reads the configuration again whenever its files change. Default: when `reload` is called. */
  readonly watchConfig?: boolean;
  /** Hears of reloads. */
  readonly reloads?: ReloadFollowers;
  /** With peers; default: 1. */
  readonly patience?: Patience;
}

/** Each may ask for a thousand lines at once. */
const MAX_LOG_FOLLOWERS = 8;

const SHUTDOWN: CloseReason = { code: 'shutdown', detail: 'the server stops' };

/** A whole running server. */
export class MillraceServer {
  /** What to tell the person who started it: where to publish, to watch, and where the API is. */
  readonly banner: string;
  /** How long whoever stops the server is to let it be emptied; 0: not at all. */
  readonly gracePeriodMs: number;
  readonly #drain: Drain;
  readonly #presence: () => Presence;
  readonly #running: Running[];
  readonly #logger: LogLines;
  readonly #health: Health;
  readonly #reload: ConfigReload;
  #stopping: Promise<void> | null = null;

  private constructor(
    { banner, reload, presence, gracePeriodMs }: Started,
    running: Running[],
    { health, drain, logger }: { readonly health: Health; readonly drain: Drain; readonly logger: LogLines },
  ) {
    this.#drain = drain;
    this.#presence = presence;
    this.gracePeriodMs = gracePeriodMs;
    this.banner = banner;
    this.#reload = reload;
    this.#running = running;
    this.#logger = logger;
    this.#health = health;
    health.phase = 'running';
  }

  /**
   * Starts everything the configuration asks for; what was started is stopped again when a part fails. Throws ConfigProblem, StartProblem
   * for ports that are taken, and StateFolderProblem for a state folder that cannot be used or has another server.
   */
  static async start(options: ServerOptions): Promise<MillraceServer> {
    const running: Running[] = [];
    const drain = new Drain();
    const health = new Health(new Conditions(), drain);
    health.conditions.ask(() => ((options.logger.dropped ?? 0) > 0 ? 'lines of the log are dropped: it cannot be written' : null));
    try {
      const { logger } = options;
      return new MillraceServer(await startAll(options, running, { health, drain }), running, { health, drain, logger });
    } catch (error) {
      health.phase = 'stopping';
      await stopAll(running, options.logger);
      throw error;
    }
  }

  /**
   * Reads the configuration file again and does what it says, without touching what has not changed. What cannot be done before a restart is
   * told in the log. A file that cannot be used changes nothing.
   */
  reload(): Promise<ReloadOutcome> {
    if (this.#stopping !== null) return Promise.resolve({ kind: 'refused', reason: 'the server stops' });
    return this.#reload.reload();
  }

  /** Takes nobody new from now on. Resolves when all publishers and viewers have left, or with `ended`. */
  empty(ended: Promise<void>): Promise<void> {
    return emptied(this.#drain, this.#presence, ended);
  }

  /** Stops everything, within 3.5 s. Idempotent. */
  stop(): Promise<void> {
    this.#health.phase = 'stopping';
    this.#stopping ??= stopAll(this.#running, this.#logger);
    return this.#stopping;
  }
}

interface Started {
  readonly banner: string;
  readonly presence: () => Presence;
  readonly gracePeriodMs: number;
  readonly reload: ConfigReload;
}

/**
 * Makes the core, starts the services with it, then the applications, then the ports. What was started is in
 * `running`: last started is told first to stop.
 */
async function startAll(
  options: ServerOptions,
  running: Running[],
  { health, drain }: { readonly health: Health; readonly drain: Drain },
): Promise<Started> {
  const { stateFolder, patience = 1 } = options;
  const configFile = findConfigFile(options.configFile);
  const loaded = loadUsable(configFile, options.logger);
  const { config } = loaded;
  const clock = systemClock;
  const { lines, logger, tail, notices, secrets } = serverLog(config, {
    ...{ written: options.logger, keepLevel: options.keepLogLevel === true, clock, running },
  });
  const version = packageVersion();
  logger.info({ config: configFile, state: stateFolder, version }, `millrace ${version} starts with ${configFile}`);
  for (const sentence of [...serverSentences(config), ...shortServerSecrets(config)]) logger.warn({}, sentence);
  tellFindings(loaded, stateFolder, logger);

  // The state folder, which may be read when nobody else writes it.
  const lock = await StateLock.open(stateFolder);
  running.push({ keeps: true, stop: async () => lock.release() });
  const apiState = new ApiState(stateFolder, logger);
  apiState.takeBack();
  if (options.forgetApiState === true) {
    // What is forgotten is gone when the start has succeeded, and not before.
    running.push({ keeps: true, stop: async () => apiState.takeBack() });
    apiState.hide();
  }
  const { conditions } = health;
  const disks = new DiskWatch({ conditions, logger, folders: watchedFolders(config, stateFolder) });
  running.push(disks);
  await disks.start();
  const token = config.managers.api.accessToken;
  const apiAccess = token === '' ? await loadOrCreateAccessToken(stateFolder, logger) : { token, file: null };
  secrets.configure([...secretsOf(config), apiAccess.token]);
  const store = new StateStore(join(stateFolder, 'vhosts'), logger);
  const pullStore = new PullDocumentStore(join(stateFolder, 'pulls'), logger);
  running.push({ keeps: true, stop: () => store.settle() }, { keeps: true, stop: () => pullStore.settle() });

  // The core. Publishers and pull sources come with the services.
  const openings = new PortOpenings();
  const threads = deliveryThreads(config, availableParallelism());
  const limits = new ServerLimits(config, threads, logger);
  running.push(limits);
  const certificates = new CertificateStore(logger, { conditions });
  running.push({ stop: async () => certificates.close() });
  const originMaps = new OriginMaps({
    ovtPort: config.bind.publishers.ovt?.port ?? null,
    conditions,
    logger: logger.child({ part: 'origin-map' }),
  });
  const queues = new QueueRegistry(clock);
  const transcoderLogger = logger.child({ part: 'transcoder' });
  const transcoder = new TranscoderSupervisor({ clock, logger: transcoderLogger, queues, ...config.modules.transcoder });
  void tellSandbox(transcoderLogger);
  const publishers = new Map<PublisherKind, Publisher>();
  const sources: PullSource[] = [];
  const services: Service[] = [];
  const webhooks = new AdmissionWebhooks({ clock, logger: logger.child({ part: 'admission' }) });
  // Sessions end while the server stops: their control servers hear of it behind everything else.
  running.push({ keeps: true, stop: () => webhooks.stop() });
  const access = new AccessControls({
    ...{ clock, onFault: tellFaults(logger), tell: tellDenied(logger, notices) },
    checksOf: allChecks(clock, (settings) => webhooks.check(settings)),
  });
  const keyUses = new KeyUses({ stateFolder, logger, times: () => access.keys.uses });
  running.push({ keeps: true, stop: () => keyUses.stop() });
  const findings = new DefinitionFindings({ bind: config.bind, logger, secrets });
  const readable = readingFolders(config, stateFolder);
  const lineage = new StreamLineage();
  const liveStreams = new LiveStreams(({ vhost, app, stream }) => {
    const found = orchestrator.application(vhost, app)?.stream(stream);
    return found?.started === true ? found : undefined;
  }, lineage);
  const orchestrator = new Orchestrator({
    ...{ clock, logger, queues, notices, store, publishers, transcoder, drain },
    ...limits.perApplication,
    adviserOf: (webhook) => new TranscodeWebhook(webhook, logger),
    readOverlays: (map, streamLogger) => readOverlays(map, readable, streamLogger),
    standIns: standInPlayers({
      sources: ({ mediaRootDir = '' }, { address: channel }) =>
        new ChannelSources({
          channel,
          root: mediaRootDir === '' ? null : new MediaRoot(mediaRootDir, readable),
          foreign: transcoder,
          live: liveStreams,
          clock,
          logger: logger.limited,
        }),
      ...{ transcoder, clock, logger },
    }),
    onHostsChanged: (virtualHosts) => {
      const hosts = virtualHosts.map(servedHostOf);
      access.follow(hosts);
      webhooks.follow(hosts);
      delivery.setHosts(hosts);
      originMaps.follow(virtualHosts);
      certificates.follow(virtualHosts);
      findings.tellHosts(virtualHosts);
    },
    onApplication: (application) => {
      findings.tellApplication(application, orchestrator.virtualHost(application.vhost));
      for (const service of services) service.applicationStarted?.(application);
    },
  });
  const pulls = new PullRegistry({
    ...{ sources, store: pullStore, work: originMaps, clock, logger, secrets },
    application: (vhost, app) => orchestrator.application(vhost, app),
  });
  const finder = new StreamDemand({
    application: (vhost, app) => orchestrator.application(vhost, app),
    applicationOnDemand: (vhost, app) => orchestrator.applicationOnDemand(vhost, app),
    origins: (vhost) => orchestrator.virtualHost(vhost)?.definition.config.origins,
    secrets: (vhost, app) => secretQueryKeys(orchestrator.virtualHost(vhost), app),
    originMap: (vhost) => originMaps.of(vhost),
    pull: (application, definition) => pulls.create(application, definition),
    ...{ drain, clock, logger: logger.limited },
  });
  const restingSources = new RestingSources();
  const delivery = new DeliveryPool({
    views: threads === 0 ? (await import('./delivery-views.ts')).VIEWS : {},
    ...{ threads, admission: limits.admission, limits: patientDeliveryLimits(patience), http2: config.modules.http2.enable },
    logConnections: lines.level === 'debug',
    pages: pagesOf(config),
    // What is there already was announced to the threads before they hear this.
    find: async (wanted) => {
      const found = (await finder.find(wanted)) ?? !finder.isUnknown(wanted);
      return found || (finder.isUnknown(wanted) ? 'unknown' : false);
    },
    judge: (vhost, request) => webhooks.judge(vhost, request),
    adopt: (record) => webhooks.adopt(record),
    onAttended: () => restingSources.rouse(),
    onKeyUses: (grants) => access.keys.noteUses(grants),
    onRefusals: (counts) => {
      access.refusals.add(counts);
      tellRefusals(notices, counts);
    },
    ...{ clock, queues, logger: logger.child({ part: 'delivery' }) },
  });
  certificates.tell((all) => delivery.setCertificates(all));
  delivery.setDefaultCrossDomains(config.defaults.crossDomains ?? { urls: [], headers: [] });
  running.push(delivery);
  drain.follow((active) => {
    logger.info(
      {},
      active ? 'the server is being drained: it takes no new sessions and publishers' : 'the server takes sessions and publishers again',
    );
    delivery.setDraining(active);
    originMaps.withdraw(active);
  });

  const setLevel = (level: LogLevel): void => {
    lines.level = level;
    delivery.logConnections(level === 'debug');
    logger.info({ level }, `the level of the log is '${level}' now`);
  };

  // The services. What their streams leave behind ends after the streams.
  const writing = writingFolders(config, stateFolder);
  const context: ServiceContext = {
    ...{
      config,
      stateFolder,
      writing,
      reading: readable,
      foreignFiles: transcoder,
      clock,
      logger,
      patience,
      conditions,
      notices,
      secrets,
      openings,
    },
    definitions: definitionFolders(config, stateFolder),
    ...{
      limits,
      certificates,
      orchestrator,
      access,
      pulls,
      finder,
      originMaps,
      queues,
      transcoder,
      delivery,
      restingSources,
      liveStreams,
      lineage,
    },
  };
  const started = <S extends Service>(service: S): S => {
    services.push(service);
    for (const publisher of service.publishers ?? []) publishers.set(publisher.kind, publisher);
    sources.push(...(service.pullSources ?? []));
    running.push({ stop: async () => service.finish?.() });
    return service;
  };
  const { dumps, segments } = started(await startHls(context));
  const { recordings } = started(await startRecordings(context));
  started(await startWebrtc(context));
  started(startMpegts(context));
  started(startSrt(context));
  started(startOvt(context));
  started(startRtmp(context));
  started(startRtsp(context));
  started(startFiles(context));
  const { schedules } = started(startSchedules(context));
  started(startThumbnails(context));
  started(startEvents(context));
  const { multiplex } = started(startMultiplex(context));
  const { pushes } = started(await startPushes(context));
  // Threads take a while to start; nothing before the ports needs them.
  const threadsStarted = delivery.start();
  running.push({ stop: () => transcoder.close() }, { stop: () => originMaps.close() });
  running.push({ stop: () => orchestrator.close(SHUTDOWN) }, { stop: async () => pulls.close(SHUTDOWN) });
  for (const service of services) running.push({ stop: async () => service.close?.() });

  // Behind the streams, whose ends they tell.
  const eventLog = startEventLog(config, { stateFolder, board: notices, clock, conditions, logger });
  running.push({ keeps: true, stop: async () => eventLog?.stop() });
  const alerts = startAlerts(config, {
    segments,
    notices,
    queues,
    clock,
    logger,
    application: (vhost, app) => orchestrator.application(vhost, app),
  });
  running.push({ keeps: true, stop: async () => alerts.stop() });

  // Applications with their streams. Relative paths mean the same whether the file, the API or the state names them.
  for (const { typed, echo, applications } of loaded.virtualHosts) {
    orchestrator.restore({ name: typed.name, config: typed, echo }, applications.map(definitionOf), { readOnly: true });
  }
  const reading: ReadOptions = { directory: dirname(resolve(configFile)) };
  await restoreVirtualHosts(store, orchestrator, { logger, reading });
  await restorePulls(pullStore, pulls, logger);
  access.keys.restoreUses(await keyUses.load());
  keyUses.start();
  if (config.modules.dynamicAppRemoval.enable) running.push(removingUnusedApplications(orchestrator.onDemand, logger));

  const live: EventFeed = new LiveFeed({ board: notices, logger: logger.child({ part: 'api' }) });
  const logs: LogFeed = new LiveFeed({ board: tail, logger: logger.child({ part: 'api' }), maxFollowers: MAX_LOG_FOLLOWERS });
  const eventLoop = new EventLoopWatch(clock);
  const history = new FigureHistory(clock, orchestrator.meter);
  history.start();
  running.push({ stop: async () => eventLoop.stop() }, { stop: async () => history.stop() });
  const metricSources: MetricSource[] = [
    processMetrics({ version, revision: gitRevision(), eventLoop, conditions, logDropped: () => options.logger.dropped ?? 0 }),
    newcomerMetrics(limits.newcomers),
    originMapMetrics(() => originMaps.figures),
    streamMetrics(orchestrator),
    transcoder.metrics,
    srtMetrics(services.flatMap(({ srtLinks = [] }) => srtLinks)),
    ...services.flatMap(({ metrics = [] }) => metrics),
    access.refusals,
    admissionMetrics(() => [...webhooks.figures, ...delivery.controlServers]),
    liveMetrics(live),
    alertMetrics(() => alerts.figures),
    eventLogMetrics(() => eventLog?.figures ?? null),
  ];

  // The ports: the API's first, which tells that the server starts, and that it stops until all else has.
  const apiParts: ApiParts = {
    ...{
      orchestrator,
      recordings,
      dumps,
      pushes,
      schedules,
      multiplex,
      pulls,
      reading,
      writing,
      limits,
      openings,
      health,
      drain,
      logger,
      patience,
    },
    accessToken: apiAccess.token,
    readers: () => delivery.readOutlets,
    reloadCertificates: (virtualHosts) => certificates.reload(virtualHosts),
    codecModules: () => transcoder.codecModules(),
    logLevel: { get: () => lines.level, set: setLevel },
    keyUsedAt: (grant) => access.keys.usedAt(grant),
    ...{ live, logs, history },
    metrics: new MetricsCollector(metricSources, config.managers.metrics.maxStreams),
  };
  const api = await startApi(config, apiParts);
  if (api !== null) running.push({ keeps: true, stop: () => api.close() });
  const metricsPort = await startMetrics(config, apiParts);
  if (metricsPort !== null) running.push({ keeps: true, stop: () => metricsPort.close() });
  // Who follows hears at once that the server stops.
  running.push({ stop: async () => live.close() });
  running.push({ stop: async () => logs.close() });
  await certificates.settled();
  await threadsStarted;
  await openDeliveryPorts(config, context);
  for (const service of services) await service.listen?.();
  openings.check();
  await apiState.forget();
  for (const service of services) service.started?.();
  const keep = (running: ServerConfig): Promise<void> => {
    secrets.configure([...secretsOf(running), apiAccess.token]);
    return keepRunningConfig(stateFolder, configFile, running);
  };
  await keep(config).catch((error: unknown) => logger.warn({ err: error }, 'the running configuration could not be kept'));
  const reload = new ConfigReload(loaded, {
    ...{ file: configFile, stateFolder, orchestrator, delivery, limits, api, reading: readable, definitions: context.definitions },
    ownToken: async () => (await loadOrCreateAccessToken(stateFolder, logger)).token,
    ...{ setLevel, alerts, keep, logger, followers: options.reloads },
  });
  if (options.watchConfig === true) {
    const watch = new ConfigWatch({ reload, logger });
    running.push({ stop: async () => watch.close() });
  }
  return {
    banner: bannerOf(config, { version, accessToken: apiAccess.token, tokenFile: apiAccess.file }),
    reload,
    presence: () => presenceIn(orchestrator, delivery.readOutlets),
    gracePeriodMs: config.drain.gracePeriod,
  };
}
