/** The core of a server: virtual hosts with their streams, who may reach them, and the threads that serve them over HTTP. */
import { availableParallelism } from 'node:os';
import { AccessControls, allChecks } from '../access/access-controls.ts';
import { AdmissionWebhooks } from '../access/admission-webhooks.ts';
import { logDenied, logFaults, postRefusals } from '../access/log-denied.ts';
import { secretQueryKeys } from '../access/secret-query-keys.ts';
import { pagesOf } from '../api/listeners.ts';
import { OriginMaps } from '../cluster/origin-maps.ts';
import type { ServerConfig } from '../config/index.ts';
import { deliveryThreads } from '../config/server-config.ts';
import type { Drain } from '../core/drain.ts';
import { Orchestrator } from '../core/orchestrator.ts';
import { readOverlays } from '../core/overlay-files.ts';
import { pullKeeper } from '../core/pull-keeper.ts';
import { PullRegistry } from '../core/pull-registry.ts';
import { QueueRegistry } from '../core/queue-registry.ts';
import { RestingSources } from '../core/resting-sources.ts';
import { StreamDemand } from '../core/stream-demand.ts';
import { StreamLineage } from '../core/stream-lineage.ts';
import type { VirtualHost } from '../core/virtual-host.ts';
import { scaledDeliveryLimits } from '../delivery/pool/delivery-limits.ts';
import { DeliveryPool } from '../delivery/pool/delivery-pool.ts';
import { servedHostOf } from '../delivery/served-host.ts';
import { ServerLimits } from '../delivery/server-limits.ts';
import { CertificateStore } from '../delivery/tls/certificate-store.ts';
import { DefinitionFindings } from '../findings/definition-findings.ts';
import { TranscodeWebhook } from '../hooks/transcode-webhook.ts';
import type { ServerLog } from '../monitoring/server-log.ts';
import { ChannelSources } from '../playout/channel-sources.ts';
import { LiveStreams } from '../playout/live-source.ts';
import { MediaRoot } from '../playout/media-root.ts';
import { standInPlayers } from '../playout/stand-in-player.ts';
import type { ServiceContext } from '../services/service.ts';
import { KeyUses } from '../state/key-uses.ts';
import { logSandbox } from '../transcoder/sandbox.ts';
import { TranscoderSupervisor } from '../transcoder/supervisor.ts';
import type { AllowedFolders } from '../util/allowed-folders.ts';
import type { Clock } from '../util/clock.ts';
import type { Conditions } from '../util/conditions.ts';
import type { TimeoutScale } from '../util/timeout-scale.ts';
import type { ServiceList } from './service-list.ts';
import type { StateFolder } from './state-folder.ts';

/** Options of the core. */
export interface ServerCoreOptions {
  readonly config: ServerConfig;
  readonly stateFolder: string;
  readonly state: Pick<StateFolder, 'vhosts' | 'pulls' | 'untold'>;
  readonly clock: Clock;
  readonly log: ServerLog;
  readonly conditions: Conditions;
  readonly drain: Drain;
  readonly timeoutScale: TimeoutScale;
  /** Folders from which files may be played. */
  readonly reading: AllowedFolders;
  /** Its services come when the core is there. */
  readonly services: ServiceList;
}

/** The core as services see it, with the parts that the server needs besides. */
export interface ServerCore
  extends Pick<
    ServiceContext,
    | 'limits'
    | 'certificates'
    | 'orchestrator'
    | 'pulls'
    | 'finder'
    | 'originMaps'
    | 'queues'
    | 'delivery'
    | 'restingSources'
    | 'liveStreams'
    | 'lineage'
  > {
  readonly access: AccessControls;
  readonly transcoder: TranscoderSupervisor;
  readonly webhooks: AdmissionWebhooks;
  readonly keyUses: KeyUses;
}

/** The orchestrator, for its own parts, and followers of its hosts that are made after it. */
interface LateParts {
  orchestrator: Orchestrator | null;
  followHosts: (virtualHosts: readonly VirtualHost[]) => void;
}

/** Without applications, publishers and pull sources; nothing listens. Its owner stops the parts. */
export async function makeCore(options: ServerCoreOptions): Promise<ServerCore> {
  const { config, stateFolder, state, clock, log, conditions, drain, timeoutScale, reading, services } = options;
  const { lines, logger, notices, secrets } = log;
  const threads = deliveryThreads(config, availableParallelism());
  const views = threads === 0 ? (await import('../delivery-views.ts')).VIEWS : {};
  const limits = new ServerLimits(config, threads, logger);
  const certificates = new CertificateStore(logger, { conditions });
  const { ovt } = config.bind.publishers;
  const originMaps = new OriginMaps({
    // Nodes without TLS can use the plain port, if there is one.
    ovtPort: ovt?.port ?? ovt?.tlsPort ?? null,
    ovtScheme: ovt?.port === undefined ? 'ovts' : 'ovt',
    ...{ clock, conditions, untold: state.untold, logger: logger.child({ part: 'origin-map' }) },
  });
  const queues = new QueueRegistry(clock);
  const transcoderLogger = logger.child({ part: 'transcoder' });
  const transcoder = new TranscoderSupervisor({ clock, logger: transcoderLogger, queues, ...config.modules.transcoder });
  void logSandbox(transcoderLogger);
  const webhooks = new AdmissionWebhooks({ clock, logger: logger.child({ part: 'admission' }) });
  const access = new AccessControls({
    ...{ clock, onFault: logFaults(logger), tell: logDenied(logger, notices) },
    checksOf: allChecks(clock, (settings) => webhooks.check(settings)),
  });
  const keyUses = new KeyUses({ stateFolder, logger, times: () => access.keys.uses });
  const findings = new DefinitionFindings({ bind: config.bind, logger, secrets });
  const lineage = new StreamLineage();
  // Nothing is asked or told before all parts are there.
  const late: LateParts = { orchestrator: null, followHosts: () => undefined };
  const liveStreams = new LiveStreams(({ vhost, app, stream }) => {
    const found = late.orchestrator?.application(vhost, app)?.stream(stream);
    return found?.started === true ? found : undefined;
  }, lineage);
  const orchestrator = new Orchestrator({
    ...{ clock, logger, queues, notices, store: state.vhosts, publishers: services.publishers, transcoder, drain },
    ...limits.perApplication,
    adviserOf: (webhook) => new TranscodeWebhook(webhook, logger),
    readOverlays: (map, streamLogger) => readOverlays(map, reading, streamLogger),
    standIns: standInPlayers({
      sources: ({ mediaRootDir = '' }, { address: channel }) =>
        new ChannelSources({
          channel,
          root: mediaRootDir === '' ? null : new MediaRoot(mediaRootDir, reading),
          foreign: transcoder,
          live: liveStreams,
          clock,
          logger: logger.limited,
        }),
      ...{ transcoder, clock, logger },
    }),
    onHostsChanged: (virtualHosts) => late.followHosts(virtualHosts),
    onApplication: (application) => {
      findings.tellApplication(application, late.orchestrator?.virtualHost(application.vhost));
      for (const service of services.all) service.applicationStarted?.(application);
    },
  });
  late.orchestrator = orchestrator;
  const pulls = new PullRegistry({
    ...{ sources: services.sources, store: state.pulls, work: originMaps, clock, logger, secrets },
    application: (vhost, app) => orchestrator.application(vhost, app),
  });
  originMaps.addKeeper(pullKeeper(pulls));
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
    ...{
      views,
      threads,
      sleeps: true,
      admission: limits.admission,
      limits: scaledDeliveryLimits(timeoutScale),
      http2: config.modules.http2.enable,
    },
    logConnections: lines.level === 'debug',
    pages: pagesOf(config),
    // Threads have already been told about existing streams at this point.
    find: async (wanted) => {
      const found = (await finder.find(wanted)) ?? !finder.isUnknown(wanted);
      return found || (finder.isUnknown(wanted) ? 'unknown' : false);
    },
    judge: (vhost, request) => webhooks.judge(vhost, request),
    adopt: (record) => webhooks.adopt(record),
    onWatched: () => restingSources.readNow(),
    onKeyUses: (grants) => access.keys.noteUses(grants),
    onRefusals: (counts) => {
      access.refusals.add(counts);
      postRefusals(notices, counts);
    },
    ...{ clock, queues, logger: logger.child({ part: 'delivery' }) },
  });
  late.followHosts = (virtualHosts) => {
    const hosts = virtualHosts.map(servedHostOf);
    access.follow(hosts);
    webhooks.follow(hosts);
    delivery.setHosts(hosts);
    originMaps.follow(virtualHosts);
    certificates.follow(virtualHosts);
    findings.tellHosts(virtualHosts);
  };
  certificates.addFollower((all) => delivery.setCertificates(all));
  delivery.setDefaultCrossDomains(config.defaults.crossDomains ?? { urls: [], headers: [] });
  drain.follow((active) => {
    logger.info(
      {},
      active ? 'the server is draining: it refuses new viewers and publishers' : 'the server accepts viewers and publishers again',
    );
    delivery.setDraining(active);
    originMaps.withdraw(active);
  });
  return {
    ...{ limits, certificates, originMaps, queues, transcoder, webhooks, access, keyUses, lineage, liveStreams },
    ...{ orchestrator, pulls, finder, restingSources, delivery },
  };
}
