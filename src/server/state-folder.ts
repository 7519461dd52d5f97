import { join, resolve } from 'node:path';
import { UntoldChanges } from '../cluster/untold-changes.ts';
import type { ServerConfig } from '../config/index.ts';
import { watchedFolders } from '../config/server-config.ts';
import { PullDocumentStore } from '../core/pull-store.ts';
import { loadOrCreateAccessToken } from '../state/access-token.ts';
import { ApiState } from '../state/api-state.ts';
import { DiskWatch } from '../state/disk-watch.ts';
import { FileMarks } from '../state/file-marks.ts';
import { LOCK_FILE, StateLock } from '../state/state-lock.ts';
import { StateStore } from '../state/state-store.ts';
import type { Conditions } from '../util/conditions.ts';
import type { Logger } from '../util/logger.ts';

/** Options of the state folder. */
export interface StateFolderOptions {
  readonly config: ServerConfig;
  /** Objects that the API made in earlier runs are hidden. */
  readonly forgets: boolean;
  readonly conditions: Conditions;
  readonly logger: Logger;
}

/** The parts of the state folder. Its owner stops them, `lock` last. */
export class StateFolder {
  readonly lock: StateLock;
  /** Objects that the API made in earlier runs. The owner forgets hidden ones once the server has started, and takes them back at a stop. */
  readonly apiState: ApiState;
  /** Watches the disks from `start` on. */
  readonly disks: DiskWatch;
  /** Virtual hosts and applications that the API made. */
  readonly vhosts: StateStore;
  /** Persistent streams that the API made. */
  readonly pulls: PullDocumentStore;
  /** Changes of shared definitions that other nodes still have to learn. */
  readonly untold: UntoldChanges;
  /** Which files of channels the API wrote. */
  readonly fileMarks: FileMarks;
  readonly #folder: string;
  readonly #options: StateFolderOptions;

  private constructor(folder: string, lock: StateLock, options: StateFolderOptions) {
    const { config, conditions, logger } = options;
    this.#folder = folder;
    this.#options = options;
    this.lock = lock;
    this.apiState = new ApiState(folder, logger);
    const folders = watchedFolders(config, folder).map((one) => (one.path === resolve(folder) ? { ...one, mark: LOCK_FILE } : one));
    this.disks = new DiskWatch({ conditions, logger, folders });
    this.vhosts = new StateStore(join(folder, 'vhosts'), logger);
    this.pulls = new PullDocumentStore(join(folder, 'pulls'), logger);
    this.untold = new UntoldChanges(join(folder, 'untold-changes'), logger);
    this.fileMarks = new FileMarks(join(folder, 'file-marks'), logger);
  }

  /** Takes the folder for this server. Rejects with `StateFolderProblem` when it cannot be used or has another server. */
  static async open(folder: string, options: StateFolderOptions): Promise<StateFolder> {
    // It may be read while it is not being written.
    return new StateFolder(folder, await StateLock.open(folder), options);
  }

  /** Call once the owner is ready to stop all parts. Resolves with the token of the API, and its file; null if the configuration names the token. */
  async start(): Promise<{ readonly token: string; readonly file: string | null }> {
    const { config, forgets, logger } = this.#options;
    this.apiState.takeBack();
    // Forgotten state is deleted once the start has succeeded, and not before.
    if (forgets) this.apiState.hide();
    await this.disks.start();
    await this.untold.load();
    await this.fileMarks.load();
    const token = config.managers.api.accessToken;
    return token === '' ? await loadOrCreateAccessToken(this.#folder, logger) : { token, file: null };
  }
}
