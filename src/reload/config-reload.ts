/** Reloads the configuration file while the server runs: applies the changes, and everything else continues. */
import { setImmediate } from 'node:timers/promises';
import type { ApiRules } from '../api/api-server.ts';
import { apiRules } from '../api/start-api.ts';
import {
  type AlertConfig,
  ConfigErrors,
  changeSentence,
  configChangeSteps,
  followedSteps,
  formatConfigProblem,
  type LoadedServer,
  type ServerConfig,
  type SettingChange,
  sharedMpegtsPort,
} from '../config/index.ts';
import { definitionFolders, readingFolders } from '../config/server-config.ts';
import { reloadServerConfig } from '../config/server-file-thread.ts';
import type { Declaration } from '../core/declared-applications.ts';
import type { Orchestrator } from '../core/orchestrator.ts';
import { definitionOf } from '../core/restored-state.ts';
import type { DeliveryPool } from '../delivery/pool/delivery-pool.ts';
import type { ServerLimits } from '../delivery/server-limits.ts';
import { ConfigProblem } from '../findings/config-problem.ts';
import { reloadUsable } from '../findings/usable-config.ts';
import type { AllowedFolders } from '../util/allowed-folders.ts';
import { counted } from '../util/counted.ts';
import type { LogLevel } from '../util/gated-lines.ts';
import { inSlices } from '../util/in-slices.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { ReloadFollowers, ReloadOutcome } from './reload-outcome.ts';

/** Changes logged one by one; beyond that their number is logged. */
const MAX_TOLD = 500;

/** The running parts that follow a configuration. All of them are the server's. */
export interface ReloadParts {
  readonly file: string;
  readonly stateFolder: string;
  readonly orchestrator: Pick<Orchestrator, 'redeclare' | 'limitStreams' | 'virtualHosts'>;
  readonly delivery: Pick<DeliveryPool, 'setDefaultCrossDomains'>;
  readonly limits: Pick<ServerLimits, 'amend'>;
  /** Null: there is no API. */
  readonly api: { amend(rules: ApiRules): void } | null;
  readonly reading: AllowedFolders;
  readonly definitions: AllowedFolders;
  /** The token that counts when the configuration names none. */
  readonly ownToken: () => Promise<string>;
  readonly setLevel: (level: LogLevel) => void;
  readonly alerts: { amend(config: AlertConfig | undefined): void };
  /** Stores the running configuration for other programs. */
  readonly keep: (config: ServerConfig) => Promise<void>;
  readonly followers?: ReloadFollowers | undefined;
  readonly logger: Logger;
}

/** Follows one configuration file. Reloads come one after the other. Nothing to close. */
export class ConfigReload {
  readonly #parts: ReloadParts;
  #running: ServerConfig;
  #files: readonly string[];
  #tail: Promise<unknown> = Promise.resolve();

  constructor(loaded: LoadedServer, parts: ReloadParts) {
    this.#parts = parts;
    this.#running = loaded.config;
    this.#files = loaded.files;
  }

  /** The running configuration: settings that need a restart are those of the start. */
  get running(): ServerConfig {
    return this.#running;
  }

  /** The files that were read last, the main one first. */
  get files(): readonly string[] {
    return this.#files;
  }

  /** Whether a reload would change anything or report an error. */
  async isBehind(): Promise<boolean> {
    const { file, logger } = this.#parts;
    try {
      const { config } = await reloadServerConfig(file, this.#files, logger);
      return (await inSlices(configChangeSteps(this.#running, config))).some(({ effect }) => effect !== 'restart');
    } catch {
      return true;
    }
  }

  /** Reads the file and applies it. Everything is logged; never rejects. */
  reload(): Promise<ReloadOutcome> {
    const done = this.#tail.then(() => this.#toldReload());
    this.#tail = done;
    return done;
  }

  async #toldReload(): Promise<ReloadOutcome> {
    const { followers, logger } = this.#parts;
    followers?.begun();
    const outcome = await this.#reload().catch((error: unknown): ReloadOutcome => {
      logger.error({ err: error }, `the reload of the configuration failed: ${messageOf(error)}`);
      return { kind: 'refused', reason: messageOf(error) };
    });
    followers?.over(outcome);
    return outcome;
  }

  async #reload(): Promise<ReloadOutcome> {
    const { file, logger } = this.#parts;
    let loaded: LoadedServer;
    try {
      loaded = await reloadUsable(file, this.#files, logger);
      // Each step of a large configuration takes a turn of the event loop.
      await setImmediate();
      this.#requireOwnPorts(loaded);
    } catch (error) {
      if (error instanceof ConfigProblem) return this.#refuse(error);
      throw error;
    }
    this.#files = loaded.files;
    const changes = await inSlices(configChangeSteps(this.#running, loaded.config));
    if (changes.length === 0) {
      logger.info({ config: file }, `${file} read again: nothing has changed`);
      return { kind: 'reloaded', changes };
    }
    const next = await inSlices(followedSteps(this.#running, loaded.config));
    await setImmediate();
    await this.#follow(next, loaded);
    await inSlices(this.#tell(changes));
    return { kind: 'reloaded', changes };
  }

  async #follow(next: ServerConfig, loaded: LoadedServer): Promise<void> {
    const { orchestrator, delivery, limits, api, reading, definitions, stateFolder, setLevel, logger } = this.#parts;
    const named = next.managers.api.accessToken;
    // Everything that can fail comes before anything changes.
    const token = named === '' ? await this.#parts.ownToken() : named;
    api?.amend(apiRules(next, token));
    if (next.log.level !== this.#running.log.level) setLevel(next.log.level);
    delivery.setDefaultCrossDomains(next.defaults.crossDomains ?? { urls: [], headers: [] });
    limits.amend(next.limits);
    this.#parts.alerts.amend(next.alert);
    orchestrator.limitStreams(next.limits.perApplication.streams);
    // Applications name folders of their own.
    reading.become(readingFolders(next, stateFolder));
    definitions.become(definitionFolders(next, stateFolder));
    for (const vhost of await orchestrator.redeclare(declarations(next, loaded))) {
      logger.warn({ vhost }, `virtual host '${vhost}' of the configuration file is left out: one made through the API has its name`);
    }
    this.#running = next;
    await this.#parts
      .keep(next)
      .catch((error: unknown) => logger.warn({ err: error }, `the running configuration could not be saved: ${messageOf(error)}`));
  }

  *#tell(changes: readonly SettingChange[]): Generator<void, void> {
    const { file, logger } = this.#parts;
    for (const change of changes.slice(0, MAX_TOLD)) {
      const { path, effect, application } = change;
      logger[effect === 'restart' ? 'warn' : 'info']({ path, effect, ...application }, changeSentence(change));
      yield;
    }
    if (changes.length > MAX_TOLD) logger.info({}, `${changes.length - MAX_TOLD} more settings have changed`);
    const late = changes.filter(({ effect }) => effect === 'restart').length;
    const rest = late === 0 ? '' : `, ${late} of them only with a restart`;
    logger.info({ config: file, changes: changes.length }, `${file} read again: ${counted(changes.length, 'change')}${rest}`);
  }

  #refuse(problem: ConfigProblem): ReloadOutcome {
    const { file, logger } = this.#parts;
    const { cause } = problem;
    const known = cause instanceof ConfigErrors ? cause.errors : [];
    for (const error of known) logger.error({ path: error.path, line: error.line }, formatConfigProblem(error));
    const reason = problem.message;
    if (known.length === 0) logger.error({}, reason);
    logger.error({ config: file }, `${file} cannot be used: nothing was changed, the server keeps its running configuration`);
    return { kind: 'refused', reason };
  }

  /** A port of MPEG-TS belongs to one stream, whatever declares it. */
  #requireOwnPorts(loaded: LoadedServer): void {
    const made = this.#parts.orchestrator.virtualHosts.filter(({ readOnly }) => !readOnly);
    const users = [
      ...loaded.config.virtualHosts.flatMap(({ name, applications }) => applications.map((config) => ({ vhost: name, config }))),
      ...made.flatMap(({ name, applications }) =>
        Array.from(applications.values(), ({ definition: { config } }) => ({ vhost: name, config })),
      ),
    ];
    const shared = sharedMpegtsPort(users);
    if (shared === null) return;
    const { path, line } = loaded.placeOf(shared.entry);
    throw new ConfigProblem(`${this.#parts.file}${line === undefined ? '' : `:${line}`}: ${path}: ${shared.message}`);
  }
}

/** The file's configuration, with the running objects where they are equal. */
function declarations({ virtualHosts }: ServerConfig, loaded: LoadedServer): Declaration[] {
  return loaded.virtualHosts.flatMap(({ echo, applications }, index) => {
    const typed = virtualHosts[index];
    if (typed === undefined) return [];
    return {
      host: definitionOf({ typed, echo }),
      applications: applications.map((application, n) =>
        definitionOf({ ...application, typed: typed.applications[n] ?? application.typed }),
      ),
    };
  });
}
