/** Folders of files that live as long as one run of one stream, and the removal of those left by crashed servers. */
import { randomUUID } from 'node:crypto';
import { readdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { AllowedFolders } from '../../../util/allowed-folders.ts';
import { isOwnFolder, makePrivateFolders } from './private-folder.ts';

const SEPARATOR = '_';
const MACHINE = hostname().replace(/[^A-Za-z0-9]/g, '-');
const START = randomUUID().replaceAll('-', '').slice(0, 12);
/** Identifies a folder's owner: machine, process and start of the process. Process ids are reused, especially in containers. */
const OWNER = [MACHINE, process.pid, START].join(SEPARATOR);

/** Allowed places of the folder, and callbacks about failures. */
export interface RunFolderOptions {
  /** Folders that may contain `root`; default: any. */
  readonly allowed?: AllowedFolders;
  /** Called with the first failure. */
  readonly onFault?: (error: unknown) => void;
  /** Called when files begin to be missing, and when writing works again. */
  readonly onState?: (isFaulty: boolean, error: unknown) => void;
}

const FILE_MODE = 0o600;
const ANYWHERE = new AllowedFolders(null, 'nothing');

/** `<root>/<address…>/<owner>_<name>`: made with its first file, removed with `remove`. */
export class RunFolder {
  readonly path: string;
  readonly #root: string;
  /** Innermost first. */
  readonly #parents: readonly string[];
  readonly #options: RunFolderOptions;
  #complained = false;
  #faulty = false;

  /** `address`: folders below `root` by which people find the files; `name` distinguishes this run from others of the same process. */
  constructor(root: string, address: readonly string[], name: string, options: RunFolderOptions = {}) {
    this.#root = root;
    this.#options = options;
    const parents = address.map((_, index) => join(root, ...address.slice(0, index + 1).map(pathComponent)));
    this.path = join(parents.at(-1) ?? root, `${OWNER}${SEPARATOR}${name}`);
    this.#parents = parents.reverse();
  }

  /** Writes a file and returns its path; rejects when the disk fails. */
  async write(name: string, bytes: readonly Uint8Array[]): Promise<string> {
    const path = join(this.path, name);
    try {
      await this.#writeNew(path, bytes);
    } catch {
      // The empty folder of the stream may just have been removed.
      try {
        await this.#writeNew(path, bytes);
      } catch (error) {
        // A partial file is useless, and its space is needed.
        await rm(path, { force: true }).catch(() => undefined);
        this.complain(error);
        throw error;
      }
    }
    if (this.#faulty) this.#tell(false, null);
    return path;
  }

  async #writeNew(path: string, bytes: readonly Uint8Array[]): Promise<void> {
    try {
      await writeFile(path, bytes, { mode: FILE_MODE });
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    const inside = relative(this.path, dirname(path)).split(sep);
    const own = inside.map((_, index) => join(this.path, ...inside.slice(0, index + 1)));
    await makePrivateFolders(this.#root, [...[...this.#parents].reverse(), this.path, ...own], this.#options.allowed ?? ANYWHERE);
    await writeFile(path, bytes, { mode: FILE_MODE });
  }

  /** A file is missing because of `error`. */
  complain(error: unknown): void {
    if (!this.#faulty) this.#tell(true, error);
    if (this.#complained) return;
    this.#complained = true;
    this.#options.onFault?.(error);
  }

  #tell(isFaulty: boolean, error: unknown): void {
    this.#faulty = isFaulty;
    this.#options.onState?.(isFaulty, error);
  }

  /** Removes the folder, and those above it that are empty then. */
  async remove(): Promise<void> {
    if (this.#faulty) this.#tell(false, null);
    await rm(this.path, { recursive: true, force: true });
    await removeEmpty(this.#parents);
  }
}

/** Removes folders below `root` of processes of this machine that have ended. Folders of other users are left alone. */
export async function sweepLeftovers(root: string): Promise<void> {
  for (const app of await foldersOf(root)) {
    if (!app.startsWith('#')) continue;
    for (const stream of await foldersOf(join(root, app))) {
      const home = join(root, app, stream);
      const runs = (await foldersOf(home)).filter(isLeftover);
      for (const run of runs) await rm(join(home, run), { recursive: true, force: true });
      if (runs.length > 0) await removeEmpty([home, join(root, app)]);
    }
  }
}

function isLeftover(run: string): boolean {
  const [machine, pid, start] = run.split(SEPARATOR);
  if (machine !== MACHINE || start === undefined) return false;
  return Number(pid) === process.pid ? start !== START : !isRunning(Number(pid));
}

function isRunning(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Innermost first; stops at a missing or non-empty folder. */
async function removeEmpty(paths: readonly string[]): Promise<void> {
  try {
    for (const path of paths) await rmdir(path);
  } catch {
    // Other streams have files there.
  }
}

async function foldersOf(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    // In folders that everyone can write to, folders of other users are not followed.
    const own = await Promise.all(folders.map((name) => isOwnFolder(join(path, name))));
    return folders.filter((_, index) => own[index]);
  } catch {
    return [];
  }
}

/** A name as one component that cannot leave its directory. */
function pathComponent(name: string): string {
  const safe = name.replace(/[/\\\0]/g, '_');
  return /^\.+$/.test(safe) ? `_${safe}` : safe;
}
