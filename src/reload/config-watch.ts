import { isDeepStrictEqual } from 'node:util';
import { FileWatch, type FileWatchTimes } from '../util/file-watch.ts';
import type { Logger } from '../util/logger.ts';
import type { ConfigReload } from './config-reload.ts';

/** The configuration whose files are followed. */
export interface ConfigWatchOptions {
  readonly reload: Pick<ConfigReload, 'files' | 'reload' | 'isBehind'>;
  readonly logger: Logger;
  readonly times?: FileWatchTimes;
}

/**
 * Reloads when the configuration file changes, or a file that it included at its last reading. The next reload finds files that newly match
 * a pattern. Runs until `close`.
 */
export class ConfigWatch {
  readonly #options: ConfigWatchOptions;
  #files: readonly string[];
  #watch: FileWatch;
  #closed = false;

  constructor(options: ConfigWatchOptions) {
    this.#options = options;
    this.#files = options.reload.files;
    this.#watch = this.#follow();
  }

  /** Idempotent. A reload that is under way continues. */
  close(): void {
    this.#closed = true;
    this.#watch.close();
  }

  #follow(): FileWatch {
    const { reload, logger, times } = this.#options;
    let isFirst = true;
    return new FileWatch({
      ...{ paths: this.#files, logger },
      ...(times !== undefined && { times }),
      changed: async () => {
        // The watch begins by reporting the present content, which may have been written since it was read.
        const isNews = !isFirst || (await reload.isBehind());
        isFirst = false;
        if (!isNews) return;
        await reload.reload();
        if (this.#closed || isDeepStrictEqual(this.#files, reload.files)) return;
        this.#files = reload.files;
        this.#watch.close();
        this.#watch = this.#follow();
      },
    });
  }
}
