/** Reports changed files of a folder, if the system does: for network file systems it reports nothing. */
import { watch as watchFolder } from 'node:fs';
import { stat } from 'node:fs/promises';

/** Watches a folder until it is closed, or fails. */
interface FolderWatcher {
  close(): void;
  on(event: 'error', listener: () => void): unknown;
}

/**
 * Requests notices from the system; throws if there are none. `told` gets the name of a file, or null for an unknown file. Default:
 * `fs.watch`.
 */
export type FolderWatch = (folder: string, told: (name: string | null) => void) => FolderWatcher;

/** Selects names of files. */
export interface FolderHintsOptions {
  /** The extension with its dot. */
  readonly extension: string;
  readonly watch?: FolderWatch;
}

/** Temporary files of a write. */
const TEMPORARY = /\.tmp$/;
const MAX_NAMES = 1000;

/**
 * Nothing is reported before `follow`, or if the system gives no notices: hints only make a check earlier, never unnecessary. Needs a
 * close.
 */
export class FolderHints {
  readonly #folder: string;
  readonly #options: FolderHintsOptions;
  readonly #names = new Set<string>();
  /** A notice that may concern all files: links may have been switched. */
  #all = false;
  #watcher: FolderWatcher | null = null;
  /** Identity of the watched folder: another one may have replaced it. */
  #identity = '';
  #closed = false;

  constructor(folder: string, options: FolderHintsOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  /** Watches the present folder. Never rejects. */
  async follow(): Promise<void> {
    const identity = await stat(this.#folder).then(
      ({ dev, ino }) => `${dev} ${ino}`,
      () => '',
    );
    if (this.#closed || (identity === this.#identity && this.#watcher !== null)) return;
    if (identity !== this.#identity) this.#all = true;
    this.#identity = identity;
    this.#leave();
    if (identity === '') return;
    try {
      const watcher = (this.#options.watch ?? watchByName)(this.#folder, (name) => this.#told(name));
      watcher.on('error', () => {
        if (this.#watcher === watcher) this.#leave();
      });
      this.#watcher = watcher;
    } catch {
      // The system has no watches left: every change is found in its turn.
    }
  }

  /** Names without extension with a notice since the last call; null: any may have changed. */
  take(): ReadonlySet<string> | null {
    const names = this.#all ? null : new Set(this.#names);
    this.#all = false;
    this.#names.clear();
    return names;
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    this.#leave();
  }

  #told(name: string | null): void {
    const { extension } = this.#options;
    if (name?.endsWith(extension) === true) this.#names.add(name.slice(0, -extension.length));
    else if (name === null || !TEMPORARY.test(name)) this.#all = true;
    if (this.#names.size <= MAX_NAMES) return;
    this.#all = true;
    this.#names.clear();
  }

  #leave(): void {
    this.#watcher?.close();
    this.#watcher = null;
  }
}

function watchByName(folder: string, told: (name: string | null) => void): FolderWatcher {
  return watchFolder(folder, { persistent: false }, (_event, name) => told(name));
}
