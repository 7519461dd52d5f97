/** Where a publisher keeps the files of its streams: leftovers of a crash go before the first file comes. */
import { RunFolder, sweepLeftovers } from './run-folder.ts';

export class DvrStorage {
  readonly #swept = new Map<string, Promise<void>>();

  /** Folder for one run of one stream; `address` as in `RunFolder`. */
  open(root: string, address: readonly string[], name: string): RunFolder {
    if (!this.#swept.has(root))
      this.#swept.set(
        root,
        sweepLeftovers(root).catch(() => undefined),
      );
    return new RunFolder(root, address, name);
  }

  /** Settles when the leftovers below all roots used so far are gone, or cannot be removed. */
  get swept(): Promise<unknown> {
    return Promise.all(this.#swept.values());
  }
}
