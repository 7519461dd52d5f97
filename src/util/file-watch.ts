/** Reports changes of files that belong together: written in place, replaced by a rename, or behind a switched link. */
import { watch as watchFolder } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { guarded } from './guarded.ts';
import type { Logger } from './logger.ts';

/** All in milliseconds. */
export interface FileWatchTimes {
  /** Poll interval, in addition to the system's notices: there are none for network file systems. */
  readonly poll: number;
  /** Files must be unchanged for this long before a change counts, because a renewal writes several files. */
  readonly settle: number;
}

const DEFAULT_TIMES: FileWatchTimes = { poll: 10_000, settle: 500 };
/** Files that keep changing are reported after this many checks. */
const MAX_RESTLESS_LOOKS = 10;

/** Watches a folder until it is closed, or fails. */
export interface FolderWatcher {
  close(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** `changed` is called when the files differ, one call at a time; rejections are logged. */
export interface FileWatchOptions {
  readonly paths: readonly string[];
  readonly changed: () => void | Promise<void>;
  readonly logger: Logger;
  readonly times?: FileWatchTimes;
  /** Subscribes to the system's notices of a folder; throws where there are none. Default: `fs.watch`. */
  readonly watch?: (folder: string, told: () => void) => FolderWatcher;
}

interface WatchedFolder {
  readonly identity: string;
  readonly watcher: FolderWatcher;
}

/** Runs from its construction until `close`; calls `changed` once at the beginning. Does not keep the process alive. */
export class FileWatch {
  readonly #options: FileWatchOptions;
  readonly #times: FileWatchTimes;
  /** Folders of the files, of the links to them and of their targets. */
  readonly #folders = new Map<string, WatchedFolder>();
  readonly #look: () => void;
  readonly #poll: NodeJS.Timeout;
  #timer: NodeJS.Timeout | null = null;
  #looking = false;
  #again = false;
  /** States of the files at the last call of `changed`, and at the last check. */
  #told: string | null = null;
  #seen: string | null = null;
  #restless = 0;
  #unwatched = false;
  #closed = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
    this.#times = options.times ?? DEFAULT_TIMES;
    this.#look = guarded(options.logger, 'the watch over files', () => this.#lookOnce());
    this.#poll = setInterval(this.#look, this.#times.poll).unref();
    this.#look();
  }

  /** Idempotent. A running call of `changed` is not interrupted. */
  close(): void {
    this.#closed = true;
    clearInterval(this.#poll);
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const { watcher } of this.#folders.values()) watcher.close();
    this.#folders.clear();
  }

  /** Files that keep changing are checked once per `settle`, however often the system reports. */
  #lookSoon(): void {
    if (this.#closed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#look();
    }, this.#times.settle).unref();
  }

  async #lookOnce(): Promise<void> {
    if (this.#looking) {
      this.#again = true;
      return;
    }
    this.#looking = true;
    try {
      await this.#followFolders();
      await this.#judge(JSON.stringify(await Promise.all(this.#options.paths.map(identityOf))));
    } finally {
      this.#looking = false;
      if (this.#again) this.#lookSoon();
      this.#again = false;
    }
  }

  async #judge(now: string): Promise<void> {
    const before = this.#seen;
    this.#seen = now;
    if (now === this.#told) {
      this.#restless = 0;
      return;
    }
    this.#restless += 1;
    if (this.#closed) return;
    if (now !== before && this.#restless < MAX_RESTLESS_LOOKS) {
      this.#lookSoon();
      return;
    }
    this.#restless = 0;
    this.#told = now;
    await this.#options.changed();
  }

  /** A switched link leads to other folders, and a recreated folder is a different one. */
  async #followFolders(): Promise<void> {
    const wanted = new Map<string, string>();
    for (const file of this.#options.paths) {
      const real = await realpath(file).catch(() => file);
      for (const folder of [path.dirname(file), path.dirname(real)]) {
        if (!wanted.has(folder)) wanted.set(folder, await folderIdentityOf(folder));
      }
    }
    if (this.#closed) return;
    for (const [folder, { identity, watcher }] of this.#folders) {
      if (wanted.get(folder) === identity) continue;
      watcher.close();
      this.#folders.delete(folder);
    }
    for (const [folder, identity] of wanted) {
      if (!this.#folders.has(folder) && identity !== '') this.#watch(folder, identity);
    }
  }

  #watch(folder: string, identity: string): void {
    const { watch = systemWatch } = this.#options;
    try {
      const watcher = watch(folder, () => this.#lookSoon());
      watcher.on('error', (error) => {
        watcher.close();
        if (this.#folders.get(folder)?.watcher === watcher) this.#folders.delete(folder);
        this.#tellUnwatched(folder, error);
      });
      this.#folders.set(folder, { identity, watcher });
    } catch (error) {
      this.#tellUnwatched(folder, error);
    }
  }

  #tellUnwatched(folder: string, error: unknown): void {
    if (this.#unwatched) return;
    this.#unwatched = true;
    const { poll } = this.#times;
    this.#options.logger.info(
      { folder, error: String(error) },
      `the system does not report changes in ${folder}: its files are checked every ${poll / 1000} s`,
    );
  }
}

function systemWatch(folder: string, told: () => void): FolderWatcher {
  return watchFolder(folder, { persistent: false }, told);
}

/** A text that differs between files of different content, and before and after a write to the same file. */
async function identityOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

/** Empty for a missing folder. */
async function folderIdentityOf(folder: string): Promise<string> {
  return stat(folder).then(
    ({ dev, ino }) => `${dev} ${ino}`,
    () => '',
  );
}
