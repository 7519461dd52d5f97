/** Watches the free space of the disks that the server writes to, and warns before they are full. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Conditions } from '../util/conditions.ts';
import { diskFault } from '../util/disk-fault.ts';
import { type DiskSpace, diskSpace, isLow } from '../util/disk-space.ts';
import type { Logger } from '../util/logger.ts';

/** Interval of checks, ms. */
const INTERVAL_MS = 10_000;

/** A folder that the server writes to. */
export interface WatchedFolder {
  /** Absolute; if it is missing, its nearest existing parent is checked. */
  readonly path: string;
  /** Description: `the state folder`. */
  readonly what: string;
  /** A file that exists unless the folder was removed or replaced; absent: the folder may be missing. */
  readonly mark?: string;
}

/** Folders of a disk watch, and its observers. */
export interface DiskWatchOptions {
  /** Gets texts without paths. */
  readonly conditions: Conditions;
  readonly logger: Logger;
  readonly folders: readonly WatchedFolder[];
  /** For tests. */
  readonly spaceOf?: (folder: string) => Promise<DiskSpace>;
}

/**
 * Checks the disks every 10 s from `start` to `stop`, and raises a condition for each folder that cannot be written to or is nearly full.
 */
export class DiskWatch {
  readonly #options: DiskWatchOptions;
  readonly #spaceOf: (folder: string) => Promise<DiskSpace>;
  /** Reported problems, by path. */
  readonly #told = new Map<string, string>();
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> | null = null;

  constructor(options: DiskWatchOptions) {
    this.#options = options;
    this.#spaceOf = options.spaceOf ?? diskSpace;
  }

  /** Resolves after the first check; others follow until `stop`. Never rejects. */
  start(): Promise<void> {
    this.#timer ??= setInterval(() => void this.look(), INTERVAL_MS).unref();
    return this.look();
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Checks all folders once; returns a check that is already running, which may take long on a slow disk. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    // A problem of a disk is reported once, not for every folder on it.
    const disks = new Set<number>();
    for (const folder of this.#options.folders) this.#tell(folder, await this.#wrongWith(folder, disks));
  }

  async #wrongWith({ path, what, mark }: WatchedFolder, disks: Set<number>): Promise<string | null> {
    try {
      const folder = await writableFolder(path);
      const { dev } = await stat(folder);
      if (mark !== undefined && !(await isThere(join(path, mark)))) return `${what} was removed: nothing is kept there until a restart`;
      if (disks.has(dev)) return null;
      disks.add(dev);
      return spaceFault(what, await this.#spaceOf(folder));
    } catch (error) {
      return writeFault(what, error);
    }
  }

  #tell({ path, what }: WatchedFolder, wrong: string | null): void {
    const { conditions, logger } = this.#options;
    const before = this.#told.get(path) ?? null;
    if (before === wrong) return;
    const key = `disk ${path}`;
    if (wrong === null) {
      this.#told.delete(path);
      conditions.clear(key);
      logger.info({ folder: path }, `${what} can be written to, and has room again`);
      return;
    }
    this.#told.set(path, wrong);
    conditions.raise(key, wrong);
    logger.warn({ folder: path }, wrong);
  }
}

/** The folder at `path`, or its nearest existing parent, if this process can write to it; rejects otherwise. */
export async function writableFolder(path: string): Promise<string> {
  const folder = await deepestThere(resolve(path));
  await access(folder, constants.W_OK | constants.X_OK);
  return folder;
}

/** The lack of room on the disk of `what`; null if there is enough. */
export function spaceFault(what: string, space: DiskSpace): string | null {
  if (space.free === 0 || space.freeFiles === 0) return `the disk of ${what} is full`;
  return isLow(space) ? `the disk of ${what} is nearly full` : null;
}

/** Describes for `what` the `error` with which `writableFolder` rejected. */
export function writeFault(what: string, error: unknown): string {
  return `${what} cannot be written to: ${diskFault(error) ?? 'it cannot be looked at'}`;
}

/** False for a missing file; rejects with the file system's error for any other fault. */
async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** The folder, or its nearest existing parent. Rejects with the file system's error for any other fault. */
async function deepestThere(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    try {
      await stat(at);
      return at;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(at) === at) throw error;
    }
  }
}
