/** Folders of files that live as long as one run of one stream, and what crashed servers left of theirs. */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';

/** Whose folder it is: this machine, this process, this start of it. Process ids come again, most of all in containers. */
const SEPARATOR = '_';
const MACHINE = hostname().replace(/[^A-Za-z0-9]/g, '-');
const START = randomUUID().replaceAll('-', '').slice(0, 12);
const OWNER = [MACHINE, process.pid, START].join(SEPARATOR);

/** `<root>/<address…>/<owner>_<name>`: made with its first file, removed with `remove`. */
export class RunFolder {
  readonly path: string;
  readonly #parents: readonly string[];
  readonly #onFault: (error: unknown) => void;
  #faulty = false;

  /**
   * `address`: folders below `root` by which people find the files; `name` tells this run from others of the same process.
   * `onFault` hears the first thing that went wrong.
   */
  constructor(root: string, address: readonly string[], name: string, onFault: (error: unknown) => void = () => undefined) {
    const parents = address.map((_, index) => join(root, ...address.slice(0, index + 1).map(pathComponent)));
    this.path = join(parents.at(-1) ?? root, `${OWNER}${SEPARATOR}${name}`);
    this.#parents = parents.reverse();
    this.#onFault = onFault;
  }

  /** Writes a file and returns its path; rejects when the disk fails. */
  async write(name: string, bytes: readonly Uint8Array[]): Promise<string> {
    const path = join(this.path, name);
    try {
      await writeNew(path, bytes);
    } catch {
      // Somebody may just have removed the empty folder of the stream.
      try {
        await writeNew(path, bytes);
      } catch (error) {
        this.complain(error);
        throw error;
      }
    }
    return path;
  }

  /** A file is missing because of `error`. */
  complain(error: unknown): void {
    if (this.#faulty) return;
    this.#faulty = true;
    this.#onFault(error);
  }

  /** Removes the folder, and those above it that are empty then. */
  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
    await removeEmpty(this.#parents);
  }
}

/** Removes what is below `root` of processes of this machine that run no more. Folders of others are left alone. */
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

async function writeNew(path: string, bytes: readonly Uint8Array[]): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, bytes);
}

/** Innermost first; one that is not empty or not there ends it. */
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
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    return [];
  }
}

/** A name as one component that cannot leave its directory. */
function pathComponent(name: string): string {
  const safe = name.replace(/[/\\\0]/g, '_');
  return /^\.+$/.test(safe) ? `_${safe}` : safe;
}
