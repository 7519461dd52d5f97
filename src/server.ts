/** Puts the server together: load, core, services, applications, ports. What stops it is in the same order, backwards. */
import { dirname, resolve } from 'node:path';
import { Health } from './api/health.ts';
import { startApi } from './api/start-api.ts';
import { startMetrics } from './api/start-metrics.ts';
import { bannerOf } from './config/banner.ts';
import { type ReadOptions, type ServerConfig, secretSteps, secretsOf } from './config/index.ts';
import { serverSentences } from './config/ineffective.ts';
import { definitionFolders, findConfigFile, readingFolders, writingFolders } from './config/server-config.ts';
import { shortServerSecrets } from './config/short-secrets.ts';
import { Drain } from './core/drain.ts';
import type { CloseReason } from './core/ingest.ts';
import { PortOpenings } from './core/port-openings.ts';
import { emptied, type Presence, presenceIn } from './core/presence.ts';
import { definitionOf, restorePulls, restoreVirtualHosts } from './core/restored-state.ts';
import { type Running, stopAll } from './core/running.ts';
import { removingUnusedApplications } from './core/template-applications.ts';
import { openDeliveryPorts } from './delivery/delivery-ports.ts';
import { logFindings } from './findings/findings.ts';
import { outsidePorts } from './findings/port-findings.ts';
import { loadUsable } from './findings/usable-config.ts';
import { startAlerts } from './hooks/alert/alerts.ts';
import { startEventLog } from './monitoring/event-log.ts';
import { serverLog } from './monitoring/server-log.ts';
import { ConfigReload } from './reload/config-reload.ts';
import { ConfigWatch } from './reload/config-watch.ts';
import type { ReloadFollowers, ReloadOutcome } from './reload/reload-outcome.ts';
import { serverApi } from './server/server-api.ts';
import { makeCore } from './server/server-core.ts';
import { ServiceList } from './server/service-list.ts';
import { StateFolder } from './server/state-folder.ts';
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
import { keepRunningConfig } from './state/running-config.ts';
import { systemClock } from './util/clock.ts';
import { Conditions } from './util/conditions.ts';
import type { LeveledLines, LogLevel } from './util/gated-lines.ts';
import { inSlices } from './util/in-slices.ts';
import type { LogLines } from './util/logger.ts';
import { outsideAddresses } from './util/own-addresses.ts';
import { packageVersion } from './util/package-version.ts';
import type { TimeoutScale } from './util/timeout-scale.ts';

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
  /** `banner` has the token of the API, if the server made it. Default: it says where that is kept. */
  readonly showToken?: boolean;
  /** Reads the configuration again whenever its files change. Default: when `reload` is called. */
  readonly watchConfig?: boolean;
  /** Hears of reloads. */
  readonly reloads?: ReloadFollowers;
  /** Factor of the timeouts for peers; default: 1. */
  readonly timeoutScale?: TimeoutScale;
}

const SHUTDOWN: CloseReason = { code: 'shutdown', detail: 'the server stops' };

/** A whole running server. */
export class MillraceServer {
  /** Text for the person who started it: where to publish, to watch, and where the API is. */
  readonly banner: string;
  /** Time for the server to be emptied before it is stopped, ms; 0: none. */
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
   * Starts the server by its configuration; if a part fails, the started parts are stopped again. Throws ConfigProblem, StartProblem for
   * ports in use, and StateFolderProblem for a state folder that is unusable or in use.
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
   * Reloads the configuration file and applies it, without touching unchanged parts. Changes that need a restart are logged. An invalid
   * file changes nothing.
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
 * Makes the core, starts the services with it, then the applications, then the ports. `running` gets the started parts; the last one is
 * stopped first.
 */
async function startAll(
  options: ServerOptions,
  running: Running[],
  { health, drain }: { readonly health: Health; readonly drain: Drain },
): Promise<Started> {
  const { stateFolder, timeoutScale = 1 } = options;
  const configFile = findConfigFile(options.configFile);
  const loaded = loadUsable(configFile, options.logger);
  const { config } = loaded;
  const clock = systemClock;
  const log = serverLog(config, { written: options.logger, keepLevel: options.keepLogLevel === true, clock });
  const { lines, logger, notices, secrets } = log;
  running.push({ keeps: true, stop: async () => log.budget.close() }, { stop: async () => notices.close() });
  const version = packageVersion();
  logger.info({ config: configFile, state: stateFolder, version }, `millrace ${version} starts with ${configFile}`);
  for (const sentence of [...serverSentences(config), ...shortServerSecrets(config)]) logger.warn({}, sentence);
  logFindings(loaded, stateFolder, logger);

  // The state folder.
  const { conditions } = health;
  const forgets = options.forgetApiState === true;
  const state = await StateFolder.open(stateFolder, { config, forgets, conditions, logger });
  running.push({ last: true, stop: async () => state.lock.release() });
  if (forgets) running.push({ keeps: true, stop: async () => state.apiState.takeBack() });
  running.push({ keeps: true, stop: () => state.vhosts.settle() }, { keeps: true, stop: () => state.pulls.settle() }, state.disks);
  running.push({ keeps: true, stop: () => state.untold.settle() }, { keeps: true, stop: () => state.fileMarks.settle() });
  const apiAccess = await state.start();
  secrets.configure([...secretsOf(config), apiAccess.token]);

  // The core. Publishers and pull sources come with the services.
  const openings = new PortOpenings();
  const services = new ServiceList();
  const readable = readingFolders(config, stateFolder);
  const { webhooks, keyUses, ...core } = await makeCore({
    ...{ config, stateFolder, state, clock, log, conditions, drain, timeoutScale, reading: readable, services },
  });
  const { limits, certificates, access, originMaps, queues, transcoder, orchestrator, pulls, delivery } = core;
  running.push(limits, { stop: async () => certificates.close() }, delivery);
  // Sessions end while the server stops: their control servers are notified after everything else.
  running.push({ keeps: true, stop: () => webhooks.stop() }, { keeps: true, stop: () => keyUses.stop() });

  const setLevel = (level: LogLevel): void => {
    lines.level = level;
    delivery.logConnections(level === 'debug');
    logger.info({ level }, `the level of the log is '${level}' now`);
  };

  // The services. What their streams leave behind ends after the streams.
  const writing = writingFolders(config, stateFolder);
  const context: ServiceContext = {
    ...{ config, stateFolder, clock, logger, timeoutScale, conditions, notices, secrets, openings, ...core },
    ...{
      writing,
      reading: readable,
      definitions: definitionFolders(config, stateFolder),
      fileMarks: state.fileMarks,
      ffmpegFiles: transcoder,
    },
  };
  const started = <S extends Service>(service: S): S => {
    services.add(service);
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
  for (const service of services.all) running.push({ stop: async () => service.close?.() });

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
  await restoreVirtualHosts(state.vhosts, orchestrator, { logger, reading });
  await restorePulls(state.pulls, pulls, logger);
  originMaps.startSharing();
  access.keys.restoreUses(await keyUses.load());
  keyUses.start();
  if (config.modules.dynamicAppRemoval.enable) running.push(removingUnusedApplications(orchestrator.onDemand, logger));

  // The ports: the API's first, which tells that the server starts, and that it stops until all else has.
  const { parts, watches, feeds } = serverApi({
    ...{ recordings, dumps, pushes, schedules, multiplex, reading, health, drain, accessToken: apiAccess.token },
    ...{ core: { ...core, webhooks }, context, services, log, setLevel, alerts, eventLog },
    logDropped: () => options.logger.dropped ?? 0,
  });
  for (const watch of watches) running.push({ stop: async () => watch.stop() });
  const api = await startApi(config, parts);
  if (api !== null) running.push({ keeps: true, stop: () => api.close() });
  const metricsPort = await startMetrics(config, parts);
  if (metricsPort !== null) running.push({ keeps: true, stop: () => metricsPort.close() });
  // Followers learn at once that the server stops.
  for (const feed of feeds) running.push({ stop: async () => feed.close() });
  await certificates.settled();
  await threadsStarted;
  await openDeliveryPorts(config, context);
  for (const service of services.all) await service.listen?.();
  openings.check();
  await state.apiState.forget();
  for (const service of services.all) service.started?.();
  const keep = async (running: ServerConfig): Promise<void> => {
    secrets.configure([...(await inSlices(secretSteps(running))), apiAccess.token]);
    return keepRunningConfig(stateFolder, configFile, running);
  };
  await keep(config).catch((error: unknown) => logger.warn({ err: error }, 'the running configuration could not be saved'));
  const reload = new ConfigReload(loaded, {
    ...{ file: configFile, stateFolder, orchestrator, delivery, limits, api, reading: readable, definitions: context.definitions },
    ownToken: async () => (await loadOrCreateAccessToken(stateFolder, logger)).token,
    ...{ setLevel, alerts, keep, logger, followers: options.reloads },
  });
  if (options.watchConfig === true) {
    const watch = new ConfigWatch({ reload, logger });
    running.push({ stop: async () => watch.close() });
  }
  const accessToken = options.showToken === true ? apiAccess.token : null;
  const facts = { version, accessToken, tokenFile: apiAccess.file, hosts: outsideAddresses(config.ip), ports: outsidePorts(loaded) };
  return {
    banner: bannerOf(config, facts),
    reload,
    presence: () => presenceIn(orchestrator, delivery.readFeeds),
    gracePeriodMs: config.drain.gracePeriod,
  };
}
