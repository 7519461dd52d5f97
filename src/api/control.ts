/** Changes of the server's resources as the API makes them: JSON bodies become definitions, definitions go to the core. */
import {
  type ApplicationConfig,
  ConfigError,
  type ReadOptions,
  type Resource,
  readApplication,
  readVirtualHost,
  type VirtualHostConfig,
} from '../config/index.ts';
import type { Application } from '../core/application.ts';
import type { Definition, JsonObject } from '../core/definition.ts';
import type { Orchestrator } from '../core/orchestrator.ts';
import type { TrafficMeter } from '../core/traffic-meter.ts';
import type { VirtualHost } from '../core/virtual-host.ts';
import type { FilePublisher } from '../publishers/file/file-publisher.ts';
import type { HlsDumper } from '../publishers/llhls/hls-dumper.ts';
import type { QueueStatus } from '../util/bounded-queue.ts';

export interface ControlPlaneOptions {
  readonly orchestrator: Orchestrator;
  readonly recordings: FilePublisher;
  readonly dumps: HlsDumper;
  /** How definitions are read: macros, and where relative paths start. */
  readonly reading?: ReadOptions;
  /** Loads the certificate files of these virtual hosts again; rejects and keeps the old ones when that fails. */
  readonly reloadCertificates: (virtualHosts: readonly VirtualHost[]) => Promise<void>;
}

/**
 * The server as the API drives it. Changes resolve when they are durable; they reject with `ConfigError`
 * or `ControlError`, and then nothing has changed.
 */
export class ControlPlane {
  /** Starts and stops recordings. */
  readonly recordings: FilePublisher;
  /** Starts and stops HLS dumps. */
  readonly dumps: HlsDumper;
  readonly #orchestrator: Orchestrator;
  readonly #reading: ReadOptions;
  readonly #reloadCertificates: ControlPlaneOptions['reloadCertificates'];

  constructor({ orchestrator, recordings, dumps, reading = {}, reloadCertificates }: ControlPlaneOptions) {
    this.recordings = recordings;
    this.dumps = dumps;
    this.#orchestrator = orchestrator;
    this.#reading = reading;
    this.#reloadCertificates = reloadCertificates;
  }

  /** Counters of the whole server. */
  get meter(): TrafficMeter {
    return this.#orchestrator.meter;
  }

  /** In order of creation. */
  get virtualHosts(): readonly VirtualHost[] {
    return this.#orchestrator.virtualHosts;
  }

  virtualHost(name: string): VirtualHost | undefined {
    return this.#orchestrator.virtualHost(name);
  }

  queueStatuses(): QueueStatus[] {
    return this.#orchestrator.queues.statuses();
  }

  /** Creates a virtual host with the applications in its definition. `host` is required here, though a file may leave it out. */
  async createVirtualHost(json: unknown): Promise<VirtualHost> {
    const host = readVirtualHost(json, this.#reading);
    if (host.typed.host === undefined) throw new ConfigError('virtualHost.host is not optional', { path: 'virtualHost.host' });
    return this.#orchestrator.createVirtualHost(
      definitionOf<VirtualHostConfig>(host),
      host.applications.map(definitionOf<ApplicationConfig>),
    );
  }

  /** Ends everything inside. */
  deleteVirtualHost(name: string): Promise<void> {
    return this.#orchestrator.deleteVirtualHost(name);
  }

  async createApplication(vhost: string, json: unknown): Promise<Application> {
    return this.#orchestrator.createApplication(vhost, this.#application(json));
  }

  /**
   * Restarts an application with what `change` makes of its present definition. The new one is read before
   * anything ends; then all sessions of the application are closed.
   */
  changeApplication(vhost: string, app: string, change: (echo: JsonObject) => unknown): Promise<Application> {
    return this.#orchestrator.replaceApplication(vhost, app, (current) => this.#application(change(current.echo)));
  }

  deleteApplication(vhost: string, app: string): Promise<void> {
    return this.#orchestrator.deleteApplication(vhost, app);
  }

  /** Loads certificate files again; rejects and keeps the old ones when that fails. */
  reloadCertificates(virtualHosts: readonly VirtualHost[]): Promise<void> {
    return this.#reloadCertificates(virtualHosts);
  }

  #application(json: unknown): Definition<ApplicationConfig> {
    return definitionOf<ApplicationConfig>(readApplication(json, this.#reading));
  }
}

function definitionOf<Config extends { readonly name: string }>({ typed, echo }: Resource<Config>): Definition<Config> {
  return { name: typed.name, config: typed, echo };
}
