/** Changes of the server's resources by the API: JSON bodies become definitions, which go to the core. */
import { resolve } from 'node:path';
import {
  type ApplicationConfig,
  ConfigError,
  type ReadOptions,
  type Resource,
  readApplication,
  readOutputProfile,
  type VirtualHostConfig,
  virtualHostSteps,
} from '../config/index.ts';
import { unprotected, unprotectedApplication } from '../config/not-built.ts';
import type { Application } from '../core/application.ts';
import type { Definition, JsonObject } from '../core/definition.ts';
import { Drain } from '../core/drain.ts';
import type { InboundStream } from '../core/inbound-stream.ts';
import type { CloseReason } from '../core/ingest.ts';
import type { Orchestrator } from '../core/orchestrator.ts';
import { type Presence, presenceIn } from '../core/presence.ts';
import type { PullDefinition } from '../core/pull.ts';
import type { PullRegistry, WaitingStream } from '../core/pull-registry.ts';
import type { TrafficMeter } from '../core/traffic-meter.ts';
import type { VirtualHost } from '../core/virtual-host.ts';
import type { FigureHistory } from '../monitoring/figure-history.ts';
import type { MetricsCollector } from '../monitoring/metrics-collector.ts';
import type { StreamHistory } from '../monitoring/stream-history.ts';
import type { Dumper } from '../services/hls/dump/dumper.ts';
import type { MultiplexChannels } from '../services/multiplex/multiplex-service.ts';
import type { PushPublisher } from '../services/push/push-publisher.ts';
import type { FilePublisher } from '../services/record/file-publisher.ts';
import type { Schedules } from '../services/schedule/schedules.ts';
import type { CodecModuleItem } from '../transcoder/codec-modules.ts';
import { AllowedFolders, PathRefused } from '../util/allowed-folders.ts';
import type { LogLevel } from '../util/gated-lines.ts';
import { inSlices } from '../util/in-slices.ts';
import type { QueueGauge } from '../util/queue-gauge.ts';
import { ApiError } from './errors.ts';
import type { EventFeed, LogFeed } from './live/live-feed.ts';

/** The level of the log while the server runs. */
export interface LogLevelControl {
  get(): LogLevel;
  set(level: LogLevel): void;
}

/** The parts of the server that the API changes and reads. Their owners close them. */
export interface ControlPlaneOptions {
  readonly orchestrator: Orchestrator;
  readonly recordings: FilePublisher;
  readonly dumps: Dumper;
  readonly pushes: PushPublisher;
  readonly schedules: Schedules;
  readonly multiplex: MultiplexChannels;
  readonly pulls: PullRegistry;
  /** How definitions are read: macros, and the start of relative paths. */
  readonly reading?: ReadOptions;
  /** Folders in which applications may have files written; default: anywhere. */
  readonly writing?: AllowedFolders;
  /** Loads the certificate files of these virtual hosts again; if that fails, rejects and keeps the old certificates. */
  readonly reloadCertificates: (virtualHosts: readonly VirtualHost[]) => Promise<void>;
  /** The transcoder's codecs on this machine, including those in use. */
  readonly codecModules: () => Promise<CodecModuleItem[]>;
  /** Whether new clients are admitted; default: always. */
  readonly drain?: Drain;
  /** Number of readers without a session; default: none. */
  readonly readers?: () => number;
  /** Level of the log. */
  readonly logLevel: LogLevelControl;
  /** When the key of a grant was last used successfully, wall clock ms; absent: unknown. */
  readonly keyUsedAt?: (grant: string) => number | undefined;
  /** Clients that follow the server live. */
  readonly live: EventFeed;
  /** Clients that follow its log. */
  readonly logs: LogFeed;
  /** Figures of the last hour. */
  readonly history: FigureHistory;
  /** Figures of each stream in the last half hour. */
  readonly streamHistory: StreamHistory;
  /** The answer of `/metrics`. */
  readonly metrics: MetricsCollector;
}

/**
 * The server as controlled by the API. Changes resolve when they are durable; they reject with `ConfigError` or `ControlError` if nothing
 * has changed.
 */
export class ControlPlane {
  /** Starts and stops recordings. */
  readonly recordings: FilePublisher;
  /** Starts and stops HLS dumps. */
  readonly dumps: Dumper;
  /** Starts and stops pushes. */
  readonly pushes: PushPublisher;
  /** Scheduled channels. */
  readonly schedules: Schedules;
  /** The multiplex channels of all applications. */
  readonly multiplex: MultiplexChannels;
  /** Clients that follow the server live. */
  readonly live: EventFeed;
  /** Clients that follow its log. */
  readonly logs: LogFeed;
  /** Figures of the last hour. */
  readonly history: FigureHistory;
  /** Figures of each stream in the last half hour. */
  readonly streamHistory: StreamHistory;
  /** Level of the log. */
  readonly logLevel: LogLevelControl;
  /** Whether new clients are admitted. */
  readonly drain: Drain;
  /** The answer of `/metrics`. */
  readonly metrics: MetricsCollector;
  readonly #orchestrator: Orchestrator;
  readonly #pulls: PullRegistry;
  readonly #reading: ReadOptions;
  readonly #writing: AllowedFolders;
  readonly #reloadCertificates: ControlPlaneOptions['reloadCertificates'];
  readonly #codecModules: ControlPlaneOptions['codecModules'];
  readonly #readers: () => number;
  readonly #keyUsedAt: NonNullable<ControlPlaneOptions['keyUsedAt']>;

  constructor(options: ControlPlaneOptions) {
    const {
      orchestrator,
      recordings,
      dumps,
      pushes,
      schedules,
      multiplex,
      pulls,
      reading = {},
      writing = new AllowedFolders(null, 'nothing'),
      reloadCertificates,
      codecModules,
      logLevel,
      drain = new Drain(),
      readers = () => 0,
      keyUsedAt = () => undefined,
      live,
      logs,
      history,
      streamHistory,
      metrics,
    } = options;
    this.recordings = recordings;
    this.dumps = dumps;
    this.pushes = pushes;
    this.schedules = schedules;
    this.multiplex = multiplex;
    this.live = live;
    this.logs = logs;
    this.history = history;
    this.streamHistory = streamHistory;
    this.logLevel = logLevel;
    this.drain = drain;
    this.metrics = metrics;
    this.#orchestrator = orchestrator;
    this.#pulls = pulls;
    this.#reading = reading;
    this.#writing = writing;
    this.#reloadCertificates = reloadCertificates;
    this.#codecModules = codecModules;
    this.#readers = readers;
    this.#keyUsedAt = keyUsedAt;
  }

  /** Clients from outside: streams sent to the server, and viewers. */
  get presence(): Presence {
    return presenceIn(this.#orchestrator, this.#readers());
  }

  /** Counters of the whole server. */
  get meter(): TrafficMeter {
    return this.#orchestrator.meter;
  }

  /** Virtual hosts in order of creation. */
  get virtualHosts(): readonly VirtualHost[] {
    return this.#orchestrator.virtualHosts;
  }

  virtualHost(name: string): VirtualHost | undefined {
    return this.#orchestrator.virtualHost(name);
  }

  application(vhost: string, app: string): Application | undefined {
    return this.#orchestrator.application(vhost, app);
  }

  /** All queues of the server, by id. */
  get queues(): readonly QueueGauge[] {
    return this.#orchestrator.queues.gauges;
  }

  /** Rejects if no transcoder process can be started to report them. */
  codecModules(): Promise<CodecModuleItem[]> {
    return this.#codecModules();
  }

  /** Creates a virtual host with the applications in its definition. `host` is required here, unlike in a file. */
  async createVirtualHost(json: unknown): Promise<VirtualHost> {
    const host = await inSlices(virtualHostSteps(json, this.#reading));
    if (host.typed.host === undefined) throw new ConfigError('virtualHost.host is not optional', { path: 'virtualHost.host' });
    requireProtection(unprotected(host.typed));
    for (const { typed } of host.applications) this.#refuseOutside(typed);
    return this.#orchestrator.createVirtualHost(
      definitionOf<VirtualHostConfig>(host),
      host.applications.map(definitionOf<ApplicationConfig>),
    );
  }

  /** Deletes a virtual host and ends everything inside. */
  async deleteVirtualHost(name: string): Promise<void> {
    await this.#pulls.deleteAll(name, null, () => this.#orchestrator.deleteVirtualHost(name));
  }

  async createApplication(vhost: string, json: unknown): Promise<Application> {
    return this.#orchestrator.createApplication(vhost, this.#application(vhost, json));
  }

  /** Throws `ConfigError` for an output profile that is invalid in every application. */
  checkOutputProfile(json: unknown): void {
    readOutputProfile(json, this.#reading);
  }

  /**
   * Restarts an application with the result of `change` for its present definition. The new definition is read before anything ends; then
   * all sessions of the application are closed.
   */
  changeApplication(vhost: string, app: string, change: (echo: JsonObject) => unknown): Promise<Application> {
    return this.#orchestrator.replaceApplication(vhost, app, (current) => this.#application(vhost, change(current.echo)));
  }

  /** Replaces the keys of an application by the result of `change` for its present definition; nothing restarts. */
  changeKeys(vhost: string, app: string, change: (echo: JsonObject) => unknown): Promise<Application> {
    return this.#orchestrator.changeKeys(vhost, app, (current) => this.#application(vhost, change(current.echo)));
  }

  /** Time of the last valid use of the key with this grant, wall clock ms; undefined: unknown. */
  keyUsedAt(grant: string): number | undefined {
    return this.#keyUsedAt(grant);
  }

  /** Wall clock, ms. */
  now(): number {
    return this.#orchestrator.now();
  }

  async deleteApplication(vhost: string, app: string): Promise<void> {
    await this.#pulls.deleteAll(vhost, app, () => this.#orchestrator.deleteApplication(vhost, app));
  }

  /** Resolves when the stream plays. Rejects with `IngestRefused` or `PullFailed`; then there is no stream. */
  pullStream(application: Application, definition: PullDefinition): Promise<void> {
    return this.#pulls.create(application, definition);
  }

  /** Persistent pulled streams that are absent now and will return on their own. */
  waitingStreams(application: Application): WaitingStream[] {
    return this.#pulls.waitingIn(application);
  }

  /** Ends a stream; a persistent stream is removed from the disk first. */
  async deleteStream(stream: InboundStream | WaitingStream): Promise<void> {
    const reason: CloseReason = { code: 'deleted', detail: 'deleted through the API' };
    await this.#pulls.delete(stream, reason);
    if ('terminate' in stream) stream.terminate(reason);
  }

  /** Loads certificate files again; if that fails, rejects and keeps the old certificates. */
  reloadCertificates(virtualHosts: readonly VirtualHost[]): Promise<void> {
    return this.#reloadCertificates(virtualHosts);
  }

  #application(vhost: string, json: unknown): Definition<ApplicationConfig> {
    const application = readApplication(json, this.#reading);
    requireProtection(unprotectedApplication(vhost, application.typed));
    this.#refuseOutside(application.typed);
    return definitionOf<ApplicationConfig>(application);
  }

  /** Refuses definitions whose files could never be written or played. Throws `ConfigError`. */
  #refuseOutside({ publishers, providers }: ApplicationConfig): void {
    for (const kind of ['llhls', 'hls'] as const) {
      const dvr = publishers[kind]?.dVR;
      if (dvr?.enable !== true || dvr.tempStoragePath === '') continue;
      this.#requireAllowed(dvr.tempStoragePath, `application.publishers.${kind}.dvr.tempStoragePath`);
    }
    const { schedule } = providers;
    for (const key of ['mediaRootDir', 'scheduleFilesDir'] as const) {
      if (schedule !== undefined) this.#requireAllowed(schedule[key], `application.providers.schedule.${key}`);
    }
    const { muxFilesDir } = providers.multiplex ?? {};
    if (muxFilesDir !== undefined) this.#requireAllowed(muxFilesDir, 'application.providers.multiplex.muxFilesDir');
  }

  #requireAllowed(folder: string, path: string): void {
    try {
      this.#writing.check(resolve(folder));
    } catch (error) {
      if (!(error instanceof PathRefused)) throw error;
      throw new ConfigError(`${path}: ${error.message}`, { path });
    }
  }
}

/** A setting for an unsupported protection must not be answered with success. */
function requireProtection(refused: readonly string[]): void {
  if (refused.length > 0) throw new ApiError('NOT_IMPLEMENTED', refused.join('; '));
}

function definitionOf<Config extends { readonly name: string }>({ typed, echo }: Resource<Config>): Definition<Config> {
  return { name: typed.name, config: typed, echo };
}
