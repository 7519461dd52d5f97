import { type ApplicationConfig, KEY_LISTS, type VirtualHostConfig } from '../config/index.ts';
import type { Clock } from '../util/clock.ts';
import { atOnce, inSlices } from '../util/in-slices.ts';
import type { Logger } from '../util/logger.ts';
import type { Turns } from '../util/newcomer-turns.ts';
import { Application } from './application.ts';
import type { ApplicationContext } from './application-context.ts';
import { ApplicationStarts } from './application-starts.ts';
import { type Declaration, type PreparedHost, preparedHosts, redeclared } from './declared-applications.ts';
import { ControlError, type Definition, type JsonObject } from './definition.ts';
import type { Drain } from './drain.ts';
import { HostNameTable } from './host-name-table.ts';
import {
  type CloseReason,
  type IngestGate,
  type IngestName,
  IngestRefused,
  type IngestRequest,
  type IngestStream,
  type IngestTarget,
} from './ingest.ts';
import type { PublisherKind } from './kinds.ts';
import { definitionsOf, postProfileChanges, postRedeclared } from './notices/config-notices.ts';
import { NO_NOTICES, type Notices } from './notices/notice.ts';
import { postRefusedIngest } from './notices/refusal-notices.ts';
import { hasOrigins } from './page-origins.ts';
import type { AdviserSource } from './profile-advice.ts';
import type { Publisher } from './publishing.ts';
import type { QueueRegistry } from './queue-registry.ts';
import type { StandIns } from './stand-in.ts';
import { TEMPLATE_NAME, TemplateApplications } from './template-applications.ts';
import { TrafficMeter } from './traffic-meter.ts';
import type { Transcoder } from './transcoding.ts';
import { VirtualHost } from './virtual-host.ts';

/** Where virtual hosts made through the API are kept. */
export interface VirtualHostStore {
  save(document: { name: string; order: number; definition: JsonObject; applications: readonly JsonObject[] }): Promise<void>;
  remove(name: string): Promise<void>;
}

/** Dependencies of the core. The server makes and closes store, publishers and transcoder. */
export interface OrchestratorOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queues: QueueRegistry;
  readonly store: VirtualHostStore;
  readonly publishers: ReadonlyMap<PublisherKind, Publisher>;
  /** Absent when this server cannot encode: encodes of output profiles are then left out. */
  readonly transcoder?: Transcoder;
  /** Advises on new streams of applications that want it; absent: no advice. */
  readonly adviserOf?: AdviserSource;
  /** As in `ApplicationContext`. */
  readonly readOverlays?: NonNullable<ApplicationContext['readOverlays']>;
  /** Plays the stand-ins of encoders; absent: there are none. */
  readonly standIns?: StandIns;
  /** Receives notices; absent: none are posted. */
  readonly notices?: Notices;
  /** Streams begin when it is their turn; absent: at once. */
  readonly turns?: Turns;
  /** While it is active, publishers are refused; absent: never. */
  readonly drain?: Pick<Drain, 'active'>;
  /** Streams published to one application at once; 0 or absent: no limit. */
  readonly maxStreams?: number;
  /** A publisher was refused because of that limit. */
  readonly onFull?: NonNullable<ApplicationContext['onFull']>;
  /** Host names, virtual hosts or the keys of applications have changed. */
  readonly onHostsChanged: (virtualHosts: readonly VirtualHost[]) => void;
  /** An application has started, for the first time or with new settings. */
  readonly onApplication?: (application: Application) => void;
}

/** Makes the next definition of an application from the definition that is valid at its turn: changes run one after the other. */
type DefinitionChange = (current: Definition<ApplicationConfig>) => Definition<ApplicationConfig>;

/**
 * Owns the virtual hosts and their applications. Changes run one after the other. A change that must survive a restart resolves only when
 * it is on disk; if the disk refuses it, nothing has changed.
 */
export class Orchestrator implements IngestGate {
  readonly meter: TrafficMeter;
  readonly queues: QueueRegistry;
  /** Applications that are made when viewers ask for their streams. */
  readonly onDemand: TemplateApplications;
  readonly #options: OrchestratorOptions;
  readonly #context: ApplicationContext & { maxStreams: number };
  readonly #virtualHosts = new Map<string, VirtualHost>();
  #hosts = new HostNameTable([]);
  readonly #starts = new ApplicationStarts((application) => this.#options.onApplication?.(application));
  readonly #notices: Notices;
  #nextStreamId = 1;
  #nextOrder = 1;
  #tail: Promise<unknown> = Promise.resolve();
  #shuttingDown = false;

  constructor(options: OrchestratorOptions) {
    this.#options = options;
    this.#notices = options.notices ?? NO_NOTICES;
    this.queues = options.queues;
    this.meter = new TrafficMeter(options.clock, null);
    this.#context = {
      clock: options.clock,
      logger: options.logger,
      queues: options.queues,
      notices: this.#notices,
      publishers: options.publishers,
      transcoder: options.transcoder ?? null,
      ...(options.adviserOf !== undefined && { adviserOf: options.adviserOf }),
      ...(options.readOverlays !== undefined && { readOverlays: options.readOverlays }),
      ...(options.standIns !== undefined && { standIns: options.standIns }),
      ...(options.turns !== undefined && { turns: options.turns }),
      ...(options.drain !== undefined && { drain: options.drain }),
      maxStreams: options.maxStreams ?? 0,
      onFull: options.onFull ?? (() => undefined),
      nextStreamId: () => {
        this.#nextStreamId += 1;
        return this.#nextStreamId - 1;
      },
    };
    this.onDemand = new TemplateApplications({
      ...{ clock: options.clock, logger: options.logger, notices: this.#notices, virtualHosts: this.#virtualHosts },
      make: (vhost, definition) => this.#make(vhost, definition),
      onMade: (application) => options.onApplication?.(application),
      forget: (application) => this.#forget(application),
    });
  }

  /** Wall clock, ms. */
  now(): number {
    return this.#options.clock.now();
  }

  /** In order of creation; file-declared ones first. */
  get virtualHosts(): readonly VirtualHost[] {
    return [...this.#virtualHosts.values()];
  }

  virtualHost(name: string): VirtualHost | undefined {
    return this.#virtualHosts.get(name);
  }

  /** Name of the virtual host that serves a host name (without port). */
  nameForHost(host: string): string | undefined {
    return this.#hosts.find(host);
  }

  application(vhost: string, app: string): Application | undefined {
    const application = this.#virtualHosts.get(vhost)?.applications.get(app);
    if (application !== undefined) this.#starts.one(application);
    return application;
  }

  /**
   * An application for a requested stream: the one of this name, else one made from the template of its virtual host (the application
   * declared as `*`). Undefined if there is neither. Not for publishers.
   */
  applicationOnDemand(vhostName: string, appName: string): Application | undefined {
    const vhost = this.#virtualHosts.get(vhostName);
    const existing = this.application(vhostName, appName);
    if (vhost === undefined || existing !== undefined) return existing;
    return this.#shuttingDown ? undefined : this.onDemand.make(vhost, appName);
  }

  /** Adds a virtual host of the configuration file or the state folder. Throws ControlError `vhost-exists`. */
  restore(
    definition: Definition<VirtualHostConfig>,
    applications: readonly Definition<ApplicationConfig>[],
    origin: { readOnly: true } | { readOnly: false; order: number },
  ): void {
    const order = origin.readOnly ? 0 : origin.order;
    this.#nextOrder = Math.max(this.#nextOrder, order + 1);
    atOnce(this.#register(definition, applications, origin.readOnly, order));
  }

  /** Many applications take many turns of the event loop; all of them are seen at once. */
  createVirtualHost(
    definition: Definition<VirtualHostConfig>,
    applications: readonly Definition<ApplicationConfig>[],
  ): Promise<VirtualHost> {
    return this.#exclusively(async () => {
      const vhost = await inSlices(this.#register(definition, applications, false, this.#nextOrder));
      this.#nextOrder += 1;
      try {
        await this.#save(vhost);
      } catch (error) {
        this.#unregister(vhost, { code: 'deleted', detail: 'virtual host could not be saved' });
        throw error;
      }
      this.#notices.post({ type: 'vhost.created', vhost: vhost.name });
      for (const app of vhost.applications.keys()) this.#notices.post({ type: 'app.created', vhost: vhost.name, app });
      return vhost;
    });
  }

  deleteVirtualHost(name: string): Promise<void> {
    return this.#exclusively(async () => {
      const vhost = this.#writable(name);
      await this.#durably(this.#options.store.remove(name), `virtual host '${name}'`);
      this.#unregister(vhost, { code: 'deleted', detail: `virtual host '${name}' was deleted` });
      for (const app of vhost.applications.keys()) this.#notices.post({ type: 'app.deleted', vhost: name, app });
      this.#notices.post({ type: 'vhost.deleted', vhost: name });
    });
  }

  createApplication(vhostName: string, definition: Definition<ApplicationConfig>): Promise<Application> {
    return this.#exclusively(async () => {
      const vhost = this.#writable(vhostName);
      if (vhost.applications.has(definition.name)) {
        throw new ControlError('app-exists', `application '${vhostName}/${definition.name}' exists already`);
      }
      const application = this.#make(vhost, definition);
      vhost.applications.set(definition.name, application);
      // Clients that come while it is being saved already need a key.
      this.#rulesChanged(definition);
      try {
        await this.#save(vhost);
      } catch (error) {
        vhost.applications.delete(definition.name);
        this.#rulesChanged(definition);
        application.close({ code: 'deleted', detail: 'application could not be saved' });
        throw error;
      }
      this.#options.onApplication?.(application);
      this.#notices.post({ type: 'app.created', vhost: vhostName, app: definition.name });
      return application;
    });
  }

  /**
   * Restarts an application with a new definition (same name): its streams and sessions end, it moves
   * to the end of the list.
   */
  replaceApplication(vhostName: string, appName: string, change: DefinitionChange): Promise<Application> {
    return this.#exclusively(async () => {
      const vhost = this.#writable(vhostName);
      const current = this.#existing(vhost, appName);
      const definition = change(current.definition);
      await this.#save(vhost, [...echoesBeside(vhost, current), definition.echo]);
      vhost.applications.delete(appName);
      current.close({ code: 'application-restart', detail: `application '${vhostName}/${appName}' restarts with new settings` });
      const application = this.#make(vhost, definition);
      vhost.applications.set(appName, application);
      this.#rulesChanged(current.definition, definition);
      this.#options.onApplication?.(application);
      this.#notices.post({ type: 'app.changed', vhost: vhostName, app: appName });
      postProfileChanges(this.#notices, { vhost: vhostName, app: appName }, current.definition.config, definition.config);
      return application;
    });
  }

  /** Changes the keys of an application; everything in it continues. */
  changeKeys(vhostName: string, appName: string, change: DefinitionChange): Promise<Application> {
    return this.#exclusively(async () => {
      const vhost = this.#writable(vhostName);
      const application = this.#existing(vhost, appName);
      const before = application.definition;
      const definition = change(before);
      const all = Array.from(vhost.applications.values(), (each) => (each === application ? definition : each.definition).echo);
      await this.#save(vhost, all);
      application.amend(definition);
      this.#rulesChanged(before, definition);
      this.#notices.post({ type: 'keys.changed', vhost: vhostName, app: appName });
      return application;
    });
  }

  deleteApplication(vhostName: string, appName: string): Promise<void> {
    return this.#exclusively(async () => {
      const vhost = this.#writable(vhostName);
      const application = this.#existing(vhost, appName);
      await this.#save(vhost, echoesBeside(vhost, application));
      vhost.applications.delete(appName);
      application.close({ code: 'deleted', detail: `application '${vhostName}/${appName}' was deleted` });
      this.#rulesChanged(application.definition);
      this.#forget(application);
      this.#notices.post({ type: 'app.deleted', vhost: vhostName, app: appName });
    });
  }

  /**
   * Applies `declared`, the virtual hosts of the configuration file, in order. An application with an equal configuration continues, an
   * application that differs only in its keys takes the new keys, others restart. Objects made by the API stay; resolves with the names of
   * declared virtual hosts that are left out because the API took their names. Many applications take many turns of the event loop; all
   * changes are seen at once.
   */
  redeclare(declared: readonly Declaration[]): Promise<readonly string[]> {
    return this.#exclusively(async () => {
      const before = definitionsOf(this.virtualHosts);
      const taken = declared.filter(({ host }) => this.#virtualHosts.get(host.name)?.readOnly === false).map(({ host }) => host.name);
      const wanted = declared.filter(({ host }) => !taken.includes(host.name));
      const prepared = await inSlices(
        preparedHosts(wanted, {
          hostOf: (host) => this.#virtualHosts.get(host.name) ?? this.#hostOf(host, true, 0),
          make: (vhost, definition) => this.#make(vhost, definition),
        }),
      );
      const gone = this.virtualHosts.filter(({ readOnly, name }) => readOnly && !wanted.some(({ host }) => host.name === name));
      for (const vhost of gone) this.#remove(vhost, { code: 'deleted', detail: `virtual host '${vhost.name}' is no longer configured` });
      const made = this.virtualHosts.filter(({ readOnly }) => !readOnly);
      const begun = prepared.flatMap((host) => {
        host.vhost.amend(host.host);
        return this.#redeclareApplications(host);
      });
      this.#virtualHosts.clear();
      for (const vhost of [...prepared.map((each) => each.vhost), ...made]) this.#virtualHosts.set(vhost.name, vhost);
      const starting = this.#starts.all(begun);
      this.#hostsChanged();
      await inSlices(starting);
      await inSlices(postRedeclared(this.#notices, before, definitionsOf(this.virtualHosts)));
      return taken;
    });
  }

  /** Limit of simultaneous streams published to one application, from now on; 0: no limit. */
  limitStreams(maxStreams: number): void {
    this.#context.maxStreams = maxStreams;
  }

  /** The virtual host of this name, else the virtual host that serves it as a host name. */
  virtualHostFor(nameOrHost: string): VirtualHost | undefined {
    return this.#virtualHosts.get(nameOrHost) ?? this.#virtualHosts.get(this.#hosts.find(nameOrHost) ?? '');
  }

  openIngest(target: IngestTarget, request: IngestRequest): IngestStream {
    return this.#tellingRefusals(target, request, () => this.#applicationFor(target).openIngest(request));
  }

  checkIngest(target: IngestTarget, request: IngestName): void {
    this.#tellingRefusals(target, request, () => this.#applicationFor(target).checkIngest(request));
  }

  #tellingRefusals<T>(target: IngestTarget, request: IngestName, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (error instanceof IngestRefused)
        postRefusedIngest(this.#notices, error, { vhost: this.#virtualHostOf(target)?.name, app: target.app, request });
      throw error;
    }
  }

  #virtualHostOf({ host, vhost }: IngestTarget): VirtualHost | undefined {
    const named = vhost === undefined ? undefined : this.#virtualHosts.get(vhost);
    return named ?? this.#virtualHosts.get(this.#hosts.find(host) ?? '');
  }

  #applicationFor(target: IngestTarget): Application {
    if (this.#shuttingDown) throw new IngestRefused('shutting-down', 'the server is shutting down');
    const vhost = this.#virtualHostOf(target);
    if (vhost === undefined) throw new IngestRefused('no-virtual-host', `no virtual host serves the host name '${target.host}'`);
    const application = this.application(vhost.name, target.app);
    if (application === undefined)
      throw new IngestRefused('no-application', `virtual host '${vhost.name}' has no application '${target.app}'`);
    return application;
  }

  /** Ends all streams and refuses new ones. */
  async close(reason: CloseReason): Promise<void> {
    this.#shuttingDown = true;
    await this.#tail.catch(() => undefined);
    for (const vhost of this.#virtualHosts.values()) {
      for (const application of vhost.applications.values()) application.close(reason);
    }
  }

  /** In steps of one application each. */
  *#register(
    definition: Definition<VirtualHostConfig>,
    applications: readonly Definition<ApplicationConfig>[],
    readOnly: boolean,
    order: number,
  ): Generator<void, VirtualHost> {
    if (this.#virtualHosts.has(definition.name)) throw new ControlError('vhost-exists', `virtual host '${definition.name}' exists already`);
    const vhost = this.#hostOf(definition, readOnly, order);
    for (const application of applications) {
      if (application.name === TEMPLATE_NAME) {
        vhost.template = application;
        continue;
      }
      if (vhost.applications.has(application.name))
        throw new ControlError('app-exists', `application '${vhost.name}/${application.name}' is declared twice`);
      vhost.applications.set(application.name, this.#make(vhost, application));
      yield;
    }
    const starting = this.#starts.all([...vhost.applications.values()]);
    this.#virtualHosts.set(vhost.name, vhost);
    this.#hostsChanged();
    yield* starting;
    return vhost;
  }

  #make(vhost: VirtualHost, definition: Definition<ApplicationConfig>): Application {
    return new Application(vhost.name, definition, vhost.meter, this.#context);
  }

  #hostOf(definition: Definition<VirtualHostConfig>, readOnly: boolean, order: number): VirtualHost {
    return new VirtualHost(definition, { readOnly, order, clock: this.#options.clock, parentMeter: this.meter });
  }

  #unregister(vhost: VirtualHost, reason: CloseReason): void {
    this.#remove(vhost, reason);
    this.#hostsChanged();
  }

  #remove(vhost: VirtualHost, reason: CloseReason): void {
    this.#virtualHosts.delete(vhost.name);
    for (const application of vhost.applications.values()) {
      application.close(reason);
      this.#forget(application);
    }
    vhost.meter.retire();
  }

  /** Returns the applications that are new or have restarted. */
  #redeclareApplications({ vhost, applications, made }: PreparedHost): Application[] {
    const template = applications.find(({ name }) => name === TEMPLATE_NAME) ?? null;
    const isSameTemplate = template?.config === vhost.template?.config;
    vhost.template = template;
    const wanted = applications.filter(({ name }) => name !== TEMPLATE_NAME);
    const { kept, begun } = redeclared({
      wanted,
      present: vhost.applications,
      // Applications made from the template stay until the template changes or their names are declared.
      stays: (application) => vhost.dynamic.has(application) && isSameTemplate,
      begin: (definition) => made.get(definition) ?? this.#make(vhost, definition),
      end: (application, reason) => {
        vhost.dynamic.delete(application);
        application.close(reason);
        if (reason.code === 'deleted') this.#forget(application);
      },
    });
    vhost.applications.clear();
    for (const application of kept) vhost.applications.set(application.name, application);
    return begun;
  }

  #forget({ vhost, name }: Application): void {
    for (const publisher of this.#options.publishers.values()) publisher.forgetApplication?.(vhost, name);
  }

  /** Reports changed access keys or rules for pages of other origins in these definitions. */
  #rulesChanged(...definitions: readonly Definition<ApplicationConfig>[]): void {
    const hasRules = ({ config }: Definition<ApplicationConfig>) =>
      hasOrigins(config) || KEY_LISTS.some((list) => config[list] !== undefined);
    if (definitions.some(hasRules)) this.#hostsChanged();
  }

  #hostsChanged(): void {
    this.#hosts = new HostNameTable(this.#virtualHosts.values());
    this.#options.onHostsChanged(this.virtualHosts);
  }

  #writable(name: string): VirtualHost {
    const vhost = this.#virtualHosts.get(name);
    if (vhost === undefined) throw new ControlError('vhost-missing', `there is no virtual host '${name}'`);
    if (vhost.readOnly) throw new ControlError('vhost-read-only', `virtual host '${name}' is declared in the configuration file`);
    return vhost;
  }

  #existing(vhost: VirtualHost, app: string): Application {
    const application = vhost.applications.get(app);
    if (application === undefined) throw new ControlError('app-missing', `there is no application '${vhost.name}/${app}'`);
    return application;
  }

  #save(vhost: VirtualHost, applications?: readonly JsonObject[]): Promise<void> {
    const { name, order, definition } = vhost;
    const echoes = applications ?? Array.from(vhost.applications.values(), (application) => application.definition.echo);
    return this.#durably(
      this.#options.store.save({ name, order, definition: definition.echo, applications: echoes }),
      `virtual host '${name}'`,
    );
  }

  async #durably(write: Promise<void>, what: string): Promise<void> {
    try {
      await write;
    } catch (error) {
      this.#options.logger.error({ err: error }, `${what} could not be saved, nothing was changed`);
      throw new ControlError('not-durable', `${what} could not be saved`, { cause: error });
    }
  }

  #exclusively<T>(change: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(change, change);
    this.#tail = result.catch(() => undefined);
    return result;
  }
}

/** The applications of a virtual host without one of them. */
function echoesBeside(vhost: VirtualHost, one: Application): JsonObject[] {
  return [...vhost.applications.values()].filter((application) => application !== one).map(({ definition }) => definition.echo);
}
