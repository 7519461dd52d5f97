/** Where a publisher keeps the files of its streams: leftovers of a crash go before the first file comes. */
import type { Logger } from '../../util/logger.ts';
import { RunFolder, sweepLeftovers } from './run-folder.ts';

export class DvrStorage {
  readonly #swept = new Map<string, Promise<void>>();
  readonly #logger: Logger | null;

  /** `logger` is told of each stream that cannot be rewound as far as it should be. */
  constructor(logger: Logger | null = null) {
    this.#logger = logger;
  }

  /** Folder for one run of one stream; `address` as in `RunFolder`. */
  open(root: string, address: readonly string[], name: string): RunFolder {
    if (!this.#swept.has(root))
      this.#swept.set(
        root,
        sweepLeftovers(root).catch(() => undefined),
      );
    return new RunFolder(root, address, name, (error) => {
      const why = error instanceof Error ? error.message : String(error);
      this.#logger?.limited.warn(
        { err: error, folder: root },
        `DVR of ${address.join('/')}: viewers cannot rewind as far as they should: ${why}`,
      );
    });
  }

  /** Settles when the leftovers below all roots used so far are gone, or cannot be removed. */
  get swept(): Promise<unknown> {
    return Promise.all(this.#swept.values());
  }
}
