import { mkdir, readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { ALL_METHODS, CrossDomainPolicy, type CrossDomainRules } from './access/cross-domains.ts';
import { ApiServer } from './api/api-server.ts';
import { ControlPlane } from './api/control.ts';
import { Health } from './api/health.ts';
import { OriginMaps } from './cluster/origin-maps.ts';
import { bannerOf } from './config/banner.ts';
import {
  ConfigErrors,
  formatConfigProblem,
  type LoadedServer,
  loadServerConfig,
  type ReadOptions,
  type ServerConfig,
} from './config/index.ts';
import { notBuiltInApplication, notBuiltInServer, unprotected } from './config/not-built.ts';
import { egressPorts, egressThreads, findConfigFile, readingFolders, watchedFolders, writingFolders } from './config/server-config.ts';
import type { PublisherKind } from './core/kinds.ts';
import { Orchestrator } from './core/orchestrator.ts';
import { PortOpenings } from './core/port-openings.ts';
import type { Publisher } from './core/publishing.ts';
import { PullRegistry } from './core/pull-registry.ts';
import { PullDocumentStore } from './core/pull-store.ts';
import { QueueRegistry } from './core/queue-registry.ts';
import { definitionOf, restorePulls, restoreVirtualHosts } from './core/restored-state.ts';
import { type Running, stopAll } from './core/running.ts';
import { StreamDemand } from './core/stream-demand.ts';
import { removingUnusedApplications } from './core/unused-applications.ts';
import { patientEgressLimits } from './delivery/pool/egress-limits.ts';
import { EgressPool } from './delivery/pool/egress-pool.ts';
import { ServerLimits } from './delivery/server-limits.ts';
import { CertificateStore } from './delivery/tls/certificate-store.ts';
import { openWithCertificate } from './delivery/tls/open-listener.ts';
import { VIEWS } from './egress-views.ts';
import { tellFindings } from './findings/findings.ts';
import { FilePullSource } from './services/file/file-pull-source.ts';
import { startMappedFiles } from './services/file/mapped-files.ts';
import { HlsDumper } from './services/hls/dump/fmp4/hls-dumper.ts';
import { FolderClaims } from './services/hls/dump/folder-claims.ts';
import { TsDumper } from './services/hls/dump/ts/ts-dumper.ts';
import { DvrStorage } from './services/hls/dvr/dvr-storage.ts';
import { LlhlsPublisher } from './services/hls/packager/fmp4/llhls-publisher.ts';
import { HlsPublisher } from './services/hls/packager/ts/hls-publisher.ts';
import { startMpegts, warnOfSharedPorts } from './services/mpegts/mpegts-listeners.ts';
import { startOvt } from './services/ovt/ovt-listeners.ts';
import { OvtPublisher } from './services/ovt/ovt-publisher.ts';
import { OvtPullSource } from './services/ovt/ovt-pull-source.ts';
import { PushPublisher } from './services/push/push-publisher.ts';
import { FilePublisher } from './services/record/file-publisher.ts';
import { startRtmp } from './services/rtmp/rtmp-listeners.ts';
import type { RtmpProvider } from './services/rtmp/rtmp-provider.ts';
import { RtspPullSource } from './services/rtsp/rtsp-pull-source.ts';
import { startSrt } from './services/srt/srt-listeners.ts';
import { SrtPublisher } from './services/srt/srt-publisher.ts';
import { ThumbnailPublisher } from './services/thumbnail/thumbnail-publisher.ts';
import type { WebrtcNeighbours, WebrtcParts } from './services/webrtc/webrtc-listeners.ts';
import { loadOrCreateAccessToken } from './state/access-token.ts';
import { DiskWatch } from './state/disk-watch.ts';
import { problemOf, StateLock } from './state/state-lock.ts';
import { StateStore } from './state/state-store.ts';
import { tellSandbox } from './transcoder/sandbox.ts';
import { TranscoderSupervisor } from './transcoder/supervisor.ts';
import type { SrtLinks } from './transport/srt/srt-metrics.ts';
import type { AllowedFolders } from './util/allowed-folders.ts';
import { BudgetedLogger } from './util/budgeted-logger.ts';
import { systemClock } from './util/clock.ts';
import { Conditions } from './util/conditions.ts';
import { LineBudget } from './util/line-budget.ts';
import { listenAddresses } from './util/listen-addresses.ts';
import type { Logger, LogLines } from './util/logger.ts';
import { packageVersion } from './util/package-version.ts';
import type { Patience } from './util/patience.ts';
import { hidingAddresses } from './util/private-logger.ts';

/** The configuration cannot be used; `message` lists what is wrong, one line each. */
export class ConfigProblem extends Error {
  override readonly name = 'ConfigProblem';
}

/** How a process runs its server; everything else is in the configuration file. */
export interface ServerOptions {
  /** Undefined: `conf/Server.xml`, else the configuration inside the package. */
  readonly configFile?: string | undefined;
  readonly stateFolder: string;
  readonly logger: LogLines;
  /** Debug lines for each HTTP connection of a viewer; default: none are made. */
  readonly logConnections?: boolean;
  /** With peers; default: 1. */
  readonly patience?: Patience;
}

const NO_RULES: CrossDomainRules = { urls: [], headers: [] };

/** A whole running server. */
export class MillraceServer {
  /** What to tell the person who started it: where to publish, to watch, and where the API is. */
  readonly banner: string;
  readonly #running: Running[];
  readonly #logger: LogLines;
  readonly #health: Health;
  #stopping: Promise<void> | null = null;

  private constructor(banner: string, running: Running[], { health, logger }: { readonly health: Health; readonly logger: LogLines }) {
    this.banner = banner;
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
    const health = new Health(new Conditions());
    try {
      const { logger } = options;
      return new MillraceServer(await startAll(options, running, health), running, { health, logger });
    } catch (error) {
      health.phase = 'stopping';
      await stopAll(running, options.logger);
      throw error;
    }
  }

  /** Stops everything, within 3.5 s. Idempotent. */
  stop(): Promise<void> {
    this.#health.phase = 'stopping';
    this.#stopping ??= stopAll(this.#running, this.#logger);
    return this.#stopping;
  }
}

/** Nothing of the folder may be read before nobody else writes it. */
async function lockState(folder: string, running: Running[]): Promise<void> {
  await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw problemOf(folder, error);
  });
  const lock = StateLock.take(folder);
  running.push({ keeps: true, stop: async () => lock.release() });
}

function loadConfig(file: string, logger: LogLines): LoadedServer {
  try {
    const loaded = loadServerConfig(file);
    for (const warning of loaded.warnings) logger.warn({ path: warning.path, line: warning.line }, formatConfigProblem(warning));
    const refused = loaded.config.virtualHosts.flatMap(unprotected);
    if (refused.length > 0) throw new ConfigProblem(`${refused.join('\n')}\n${file} cannot be used.`);
    return loaded;
  } catch (error) {
    if (error instanceof ConfigErrors) throw new ConfigProblem(`${error.message}\n${file} cannot be used.`, { cause: error });
    throw error;
  }
}

async function startAll(options: ServerOptions, running: Running[], health: Health): Promise<string> {
  const { stateFolder, patience = 1 } = options;
  const configFile = findConfigFile(options.configFile);
  const loaded = loadConfig(configFile, options.logger);
  const { config } = loaded;
  const budget = new LineBudget(systemClock, options.logger);
  running.push({ keeps: true, stop: async () => budget.close() });
  const wholeLogger = new BudgetedLogger(options.logger, budget);
  const logger = config.privacyProtection ? hidingAddresses(wholeLogger) : wholeLogger;
  logger.info(
    { config: configFile, state: stateFolder, version: packageVersion() },
    `millrace ${packageVersion()} starts with ${configFile}`,
  );
  for (const sentence of notBuiltInServer(config)) logger.warn({}, sentence);
  tellFindings(loaded, stateFolder, logger);
  await lockState(stateFolder, running);
  const openings = new PortOpenings();
  const { conditions } = health;
  const disks = new DiskWatch({ conditions, logger, folders: watchedFolders(config, stateFolder) });
  running.push(disks);
  await disks.start();
  const store = new StateStore(join(stateFolder, 'vhosts'), logger);
  const token = config.managers.api.accessToken;
  const access = token === '' ? await loadOrCreateAccessToken(stateFolder, logger) : { token, file: null };

  const threads = egressThreads(config, availableParallelism());
  const limits = new ServerLimits(config, threads, logger);
  running.push(limits);
  const originMaps = new OriginMaps({ ovtPort: config.bind.publishers.ovt?.port ?? null, logger: logger.child({ part: 'origin-map' }) });
  const demand: StreamDemand = new StreamDemand({
    application: (vhost, app) => orchestrator.application(vhost, app),
    applicationOnDemand: (vhost, app) => orchestrator.applicationOnDemand(vhost, app),
    origins: (vhost) => orchestrator.virtualHost(vhost)?.definition.config.origins,
    originMap: (vhost) => originMaps.of(vhost),
    pull: (application, definition) => pulls.create(application, definition),
    clock: systemClock,
    logger: logger.limited,
  });
  const webrtc = await startWebrtcIfBound(
    config,
    openings,
    {
      virtualHostFor: (host) => orchestrator.nameForHost(host),
      gate: {
        openIngest: (target, request) => orchestrator.openIngest(target, request),
        checkIngest: (target, request) => orchestrator.checkIngest(target, request),
      },
      providerSettings: (vhost, app) => orchestrator.application(vhost, app)?.definition.config.providers?.webrtc ?? null,
      finder: demand,
      limits,
      logger,
      patience,
    },
    running,
  );
  const rtmpProviders: RtmpProvider[] = [];
  const rousePublishers = (): void => {
    for (const provider of rtmpProviders) provider.rouse();
  };
  const pool = new EgressPool({
    threads,
    admission: limits.admission,
    views: VIEWS,
    limits: patientEgressLimits(patience),
    http2: config.modules.http2.enable,
    ...(webrtc !== null && { foreign: webrtc.signallingPath }),
    logConnections: options.logConnections === true,
    // What is there already was announced to the threads before they hear this.
    find: async (wanted) => (await demand.find(wanted)) ?? true,
    onAttended: rousePublishers,
    clock: systemClock,
    logger: logger.child({ part: 'egress' }),
  });
  const certificates = new CertificateStore(logger);
  certificates.tell((all) => pool.setCertificates(all));
  const allowed = writingFolders(config, stateFolder);
  const writing = { clock: systemClock, logger, stateFolder, allowed, conditions, claims: new FolderClaims() };
  const recordings = new FilePublisher(writing);
  const dvr = new DvrStorage(writing);
  const tsDumps = new TsDumper(writing);
  const hls = new HlsPublisher(pool, tsDumps, dvr);
  const dumps = new HlsDumper(writing);
  const llhls = new LlhlsPublisher(pool, dumps, dvr);
  await recordings.load();
  // Before streams come, which have dumps of their own.
  await dumps.recover();
  const ovt = new OvtPublisher({ logger: logger.child({ publisher: 'ovt' }), clock: systemClock, finder: demand, directory: originMaps });
  const srt = new SrtPublisher({ logger: logger.child({ publisher: 'srt' }), clock: systemClock, finder: demand });
  const thumbnail = new ThumbnailPublisher(pool);
  const queues = new QueueRegistry(systemClock);
  const transcoderLogger = logger.child({ part: 'transcoder' });
  const transcoder = new TranscoderSupervisor({ clock: systemClock, logger: transcoderLogger, queues, ...config.modules.transcoder });
  void tellSandbox(transcoderLogger);
  const pushes = new PushPublisher({ clock: systemClock, logger, queues, stateFolder });
  await pushes.start();
  const orchestrator: Orchestrator = new Orchestrator({
    clock: systemClock,
    logger,
    queues,
    store,
    publishers: new Map<PublisherKind, Publisher>([
      [llhls.kind, llhls],
      [hls.kind, hls],
      [recordings.kind, recordings],
      ...(webrtc?.publisher == null ? [] : [[webrtc.publisher.kind, webrtc.publisher] as const]),
      [srt.kind, srt],
      [ovt.kind, ovt],
      [thumbnail.kind, thumbnail],
      [pushes.kind, pushes],
    ]),
    transcoder,
    ...limits.perApplication,
    onHostsChanged: (virtualHosts) => {
      pool.setHosts(
        virtualHosts.map(({ name, hostNames, definition }) => {
          const { origins, originMapStore } = definition.config;
          return { name, hostNames, hasOrigins: (origins?.origin.length ?? 0) > 0 || originMapStore !== undefined };
        }),
      );
      originMaps.follow(virtualHosts);
      certificates.follow(virtualHosts);
    },
    onApplication: (application) => {
      const { vhost, name: app, definition } = application;
      for (const sentence of notBuiltInApplication(vhost, definition.config)) logger.warn({ vhost, app }, sentence);
      warnOfSharedPorts(orchestrator, application, logger);
      startMappedFiles(application, pulls, logger);
    },
  });
  const files = [recordings, { stop: () => dumps.close() }, { stop: () => tsDumps.close() }];
  running.push({ keeps: true, stop: () => store.settle() }, pool, ...files, pushes, { stop: () => transcoder.close() });
  pool.setDefaultCrossDomains(config.defaults.crossDomains ?? NO_RULES);
  // Threads take a while to start; nothing before the listeners needs them.
  const poolStarted = pool.start();
  running.push({ stop: () => originMaps.close() });
  running.push({ stop: () => orchestrator.close({ code: 'shutdown', detail: 'the server stops' }) });
  const pullStore = new PullDocumentStore(join(stateFolder, 'pulls'), logger);
  const pulls: PullRegistry = new PullRegistry({
    sources: [
      new RtspPullSource(systemClock),
      new OvtPullSource(systemClock),
      new FilePullSource(systemClock, readingFolders(config, stateFolder)),
    ],
    store: pullStore,
    clock: systemClock,
    logger,
    application: (vhost, app) => orchestrator.application(vhost, app),
  });
  running.push({ keeps: true, stop: () => pullStore.settle() });
  running.push({ stop: async () => pulls.close({ code: 'shutdown', detail: 'the server stops' }) });
  for (const { typed, echo, applications } of loaded.virtualHosts) {
    orchestrator.restore({ name: typed.name, config: typed, echo }, applications.map(definitionOf), { readOnly: true });
  }
  // Relative paths mean the same whether the file, the API or the state names them.
  const reading: ReadOptions = { directory: dirname(resolve(configFile)) };
  await restoreVirtualHosts(store, orchestrator, { logger, reading });
  await restorePulls(pullStore, pulls, logger);
  if (config.modules.dynamicAppRemoval.enable) running.push(removingUnusedApplications(orchestrator, logger));
  const srtLinks: SrtLinks[] = [
    { direction: 'playback', statistics: () => srt.statistics() },
    { direction: 'push', statistics: () => pushes.statistics() },
  ];
  const { token: accessToken } = access;
  const shared = { logger, openings, orchestrator, limits, certificates, patience };
  const managed = { recordings, dumps, pushes, pulls, transcoder, reading, allowed, accessToken, srtLinks, health };
  await startApi(config, { ...shared, ...managed }, running);
  await certificates.settled();
  await poolStarted;
  await startListeners(config, { ...shared, conditions, pool, srt, srtLinks, ovt, rtmpProviders, rousePublishers }, running);
  openings.check();
  // A start that fails leaves what the last run left as it was.
  recordings.recover();
  return bannerOf(config, { version: packageVersion(), accessToken, tokenFile: access.file });
}

/** A hundred modules of WebRTC are loaded only where its ports are asked for. */
async function startWebrtcIfBound(
  config: ServerConfig,
  openings: PortOpenings,
  ...rest: [neighbours: WebrtcNeighbours, running: Running[]]
): Promise<WebrtcParts | null> {
  if (config.bind.publishers.webrtc === undefined && config.bind.providers.webrtc === undefined) return null;
  const { startWebrtc } = await import('./services/webrtc/webrtc-listeners.ts');
  return await openings.open('a port of Bind/Providers/WebRTC or Bind/Publishers/WebRTC', () => startWebrtc(config, ...rest));
}

interface Parts {
  readonly logger: Logger;
  readonly openings: PortOpenings;
  readonly orchestrator: Orchestrator;
  readonly limits: ServerLimits;
  readonly certificates: CertificateStore;
  readonly patience: Patience;
}

interface ListenerParts extends Parts {
  readonly conditions: Conditions;
}

async function startListeners(
  config: ServerConfig,
  parts: ListenerParts & {
    readonly pool: EgressPool;
    readonly srt: SrtPublisher;
    readonly srtLinks: SrtLinks[];
    readonly ovt: OvtPublisher;
    /** Takes those that are started. */
    readonly rtmpProviders: RtmpProvider[];
    readonly rousePublishers: () => void;
  },
  running: Running[],
): Promise<void> {
  const { logger, openings, orchestrator, limits, pool, srt, srtLinks, ovt, patience } = parts;
  const common = { orchestrator, openings, limits, clock: systemClock, patience };
  for (const { element, ...port } of egressPorts(config)) {
    const open = async (): Promise<void> => {
      const opened = await openings.open(`HTTP port ${port.port} (${element})`, () => pool.listen(port));
      if (opened !== null) logger.info({ part: 'egress', ...port }, 'HTTP listening for viewers');
    };
    await (port.tls ? openWithCertificate(`TLS port ${port.port}`, open, parts) : open());
  }
  await startMpegts(config, { ...common, logger: logger.child({ provider: 'mpegts' }) }, running);
  await startSrt(config, { ...common, publisher: srt, links: srtLinks, logger: logger.child({ provider: 'srt' }) }, running);
  await startOvt(config, { ...common, publisher: ovt }, running);
  await startRtmp(config, { ...parts, logger: logger.child({ provider: 'rtmp' }) }, running);
}

async function startApi(
  config: ServerConfig,
  parts: Parts & {
    readonly recordings: FilePublisher;
    readonly dumps: HlsDumper;
    readonly pushes: PushPublisher;
    readonly pulls: PullRegistry;
    readonly reading: ReadOptions;
    readonly allowed: AllowedFolders;
    readonly transcoder: TranscoderSupervisor;
    readonly srtLinks: readonly SrtLinks[];
    readonly accessToken: string;
    readonly health: Health;
  },
  running: Running[],
): Promise<void> {
  const { api } = config.bind.managers;
  if (api === undefined || (api.port === undefined && api.tlsPort === undefined)) {
    parts.logger.warn({}, 'the API is off: Bind/Managers/API names no Port');
    return;
  }
  const { host, api: manager } = config.managers;
  const { tls } = host;
  const control = new ControlPlane({
    orchestrator: parts.orchestrator,
    recordings: parts.recordings,
    dumps: parts.dumps,
    pushes: parts.pushes,
    pulls: parts.pulls,
    reading: parts.reading,
    writing: parts.allowed,
    reloadCertificates: (virtualHosts) => parts.certificates.reload(virtualHosts),
    codecModules: () => parts.transcoder.codecModules(),
    srtLinks: parts.srtLinks,
  });
  const server = new ApiServer({
    control,
    version: packageVersion(),
    accessToken: parts.accessToken,
    hostNames: host.names,
    crossDomains: new CrossDomainPolicy({
      defaults: config.defaults.crossDomains ?? NO_RULES,
      own: manager.crossDomains ?? null,
      methods: ALL_METHODS,
    }),
    privacyProtection: config.privacyProtection,
    maxConnections: parts.limits.apiConnections,
    refusals: parts.limits.refusals,
    patience: parts.patience,
    logger: parts.logger.child({ part: 'api' }),
    health: parts.health,
    addresses: listenAddresses(api.ip.length > 0 ? api.ip : config.ip),
    port: api.port ?? null,
    tls:
      api.tlsPort === undefined || tls === undefined
        ? null
        : {
            port: api.tlsPort,
            load: async () => {
              const chain = tls.chainCertPath === undefined ? '' : await readFile(tls.chainCertPath, 'utf8');
              return { cert: `${await readFile(tls.certPath, 'utf8')}\n${chain}`, key: await readFile(tls.keyPath, 'utf8') };
            },
          },
  });
  // Until all others have stopped it tells that the server stops, and nothing else.
  running.push({ keeps: true, stop: () => server.close() });
  await parts.openings.open(`API port ${api.port ?? api.tlsPort} (Bind/Managers/API)`, () => server.listen());
}
