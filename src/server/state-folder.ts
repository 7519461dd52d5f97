import { join, resolve } from 'node:path';
import type { ServerConfig } from '../config/index.ts';
import { watchedFolders } from '../config/server-config.ts';
import { PullDocumentStore } from '../core/pull-store.ts';
import type { Running } from '../core/running.ts';
import { loadOrCreateAccessToken } from '../state/access-token.ts';
import { ApiState } from '../state/api-state.ts';
import { DiskWatch } from '../state/disk-watch.ts';
import { LOCK_FILE, StateLock } from '../state/state-lock.ts';
import { StateStore } from '../state/state-store.ts';
import type { Conditions } from '../util/conditions.ts';
import type { Logger } from '../util/logger.ts';

/** The parts of the state folder. */
export interface StateFolder {
  /** Virtual hosts and applications that the API made. */
  readonly vhosts: StateStore;
  /** Persistent streams that the API made. */
  readonly pulls: PullDocumentStore;
  /** The token of the API, and its file; null if the configuration names the token. */
  readonly apiAccess: { readonly token: string; readonly file: string | null };
  /** Call when the server has started: deletes the hidden documents for good. */
  forgetHidden(): Promise<void>;
}

/**
 * Takes the folder for this server, and watches its disks; `running` takes what gives it back. Rejects with `StateFolderProblem` when it
 * cannot be used or has another server.
 */
export async function openStateFolder(
  folder: string,
  options: {
    readonly config: ServerConfig;
    /** Objects that the API made in earlier runs are hidden. */
    readonly forgets: boolean;
    readonly conditions: Conditions;
    readonly logger: Logger;
    readonly running: Running[];
  },
): Promise<StateFolder> {
  const { config, forgets, conditions, logger, running } = options;
  // It may be read while it is not being written.
  const lock = await StateLock.open(folder);
  running.push({ last: true, stop: async () => lock.release() });
  const apiState = new ApiState(folder, logger);
  apiState.takeBack();
  if (forgets) {
    // Forgotten state is deleted once the start has succeeded, and not before.
    running.push({ keeps: true, stop: async () => apiState.takeBack() });
    apiState.hide();
  }
  const folders = watchedFolders(config, folder).map((one) => (one.path === resolve(folder) ? { ...one, mark: LOCK_FILE } : one));
  const disks = new DiskWatch({ conditions, logger, folders });
  running.push(disks);
  await disks.start();
  const token = config.managers.api.accessToken;
  const apiAccess = token === '' ? await loadOrCreateAccessToken(folder, logger) : { token, file: null };
  const vhosts = new StateStore(join(folder, 'vhosts'), logger);
  const pulls = new PullDocumentStore(join(folder, 'pulls'), logger);
  running.push({ keeps: true, stop: () => vhosts.settle() }, { keeps: true, stop: () => pulls.settle() });
  return { vhosts, pulls, apiAccess, forgetHidden: () => apiState.forget() };
}
