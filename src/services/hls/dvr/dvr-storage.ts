/** Folders in which publishers keep the files of their streams. The first use of a folder removes leftovers of crashed servers. */
import { join, resolve } from 'node:path';
import { AllowedFolders } from '../../../util/allowed-folders.ts';
import { Conditions } from '../../../util/conditions.ts';
import { diskFault } from '../../../util/disk-fault.ts';
import type { Logger } from '../../../util/logger.ts';
import { messageOf } from '../../../util/message-of.ts';
import { RunFolder, sweepLeftovers } from './run-folder.ts';

const FOLDER = 'dvr';

/** Allowed folders of DVR files, and callbacks about failures. */
export interface DvrStorageOptions {
  /** Streams whose settings name no folder keep their files in its folder `dvr`. */
  readonly stateFolder: string;
  /** Folders that must contain a folder named in settings. */
  readonly allowed: AllowedFolders;
  /** Raised while files cannot be written. */
  readonly conditions: Conditions;
  /** Logs each stream whose rewind window is shorter than configured. */
  readonly logger: Logger;
}

/** All publishers of a server share one. */
export class DvrStorage {
  readonly #options: DvrStorageOptions | null;
  readonly #conditions: Conditions;
  readonly #swept = new Map<string, Promise<void>>();

  /** Without options every stream must name a folder, and may name any. */
  constructor(options: DvrStorageOptions | null = null) {
    this.#options = options;
    this.#conditions = options?.conditions ?? new Conditions();
  }

  /**
   * Folder for one run of one stream below `wanted` (empty: the server's); `address` as in `RunFolder`. Failed writes are logged, and the
   * stream continues without them.
   */
  open(wanted: string, address: readonly string[], name: string): RunFolder {
    const { stateFolder = '', logger, allowed } = this.#options ?? {};
    const anywhere = new AllowedFolders(null, 'nothing');
    const root = wanted === '' ? join(resolve(stateFolder), FOLDER) : resolve(stateFolder, wanted);
    const folders = wanted === '' ? anywhere : (allowed ?? anywhere);
    const condition = `dvr ${JSON.stringify([...address, name])}`;
    this.#sweep(root, folders);
    return new RunFolder(root, address, name, {
      allowed: folders,
      onFault: (error) => {
        const why = messageOf(error);
        logger?.limited.warn(
          { err: error, folder: root },
          `DVR of ${address.join('/')}: viewers cannot rewind as far as configured: ${why}`,
        );
      },
      onState: (isFaulty, error) => {
        if (isFaulty) this.#conditions.raise(condition, `a stream cannot be rewound as far as it should: ${wordsFor(error)}`);
        else this.#conditions.clear(condition);
      },
    });
  }

  /** Settles when the leftovers below all roots used so far are removed, or cannot be. */
  get swept(): Promise<unknown> {
    return Promise.all(this.#swept.values());
  }

  #sweep(root: string, folders: AllowedFolders): void {
    if (this.#swept.has(root)) return;
    const sweep = async (): Promise<void> => {
      await folders.checkLinks(root);
      await sweepLeftovers(root);
    };
    this.#swept.set(
      root,
      sweep().catch(() => undefined),
    );
  }
}

/** A public text, without paths. */
function wordsFor(error: unknown): string {
  return diskFault(error) ?? 'its folder cannot be used';
}
