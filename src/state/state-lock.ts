/** Ensures one server per state folder. */
import { accessSync, constants, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { messageOf } from '../util/message-of.ts';

/** Name of a file in the state folder of a server. The file is always empty: it exists to be locked. */
export const LOCK_FILE = 'server.lock';
/** File that names the holder of the lock, for people. */
const HOLDER_FILE = 'server.pid';
/** SQLITE_BUSY. */
const BUSY = 5;
/** Takes the exclusive lock of the file at once, and writes nothing. */
const TAKE = 'PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE';

/** Needs a shared lock for a moment, which the holder of the exclusive lock prevents. */
const LOOK = 'SELECT count(*) FROM sqlite_schema';

/** The state folder cannot be used; the message says which and why. */
export class StateFolderProblem extends Error {
  override readonly name = 'StateFolderProblem';
}

/**
 * The lock of a state folder, by locks of SQLite, which are the kernel's: they end with the process in every case, need no process ids, and
 * hold across containers. `release` releases it.
 */
export class StateLock {
  readonly #database: DatabaseSync;
  readonly #holderFile: string;

  private constructor(database: DatabaseSync, holderFile: string) {
    this.#database = database;
    this.#holderFile = holderFile;
  }

  /** Takes the lock of `folder`, which must exist. Throws `StateFolderProblem` if another server has it, or it cannot be written to. */
  static take(folder: string): StateLock {
    const holderFile = join(folder, HOLDER_FILE);
    let database: DatabaseSync | null = null;
    try {
      if (!statSync(folder).isDirectory()) throw new Error('it is not a folder');
      accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
      database = new DatabaseSync(join(folder, LOCK_FILE), { timeout: 0 });
      database.exec(TAKE);
      warnOfHolder(holderFile);
    } catch (error) {
      database?.close();
      if (isBusy(error)) throw new StateFolderProblem(`state folder '${folder}' is in use by ${holderOf(holderFile)}`, { cause: error });
      throw problemOf(folder, error);
    }
    return new StateLock(database, holderFile);
  }

  /** Creates `folder`, if it is missing, and takes its lock. Rejects with `StateFolderProblem`. */
  static async open(folder: string): Promise<StateLock> {
    await mkdir(folder, { recursive: true }).catch((error: unknown) => {
      throw problemOf(folder, error);
    });
    return StateLock.take(folder);
  }

  /** The holder of the lock of `folder`; null: none. Throws `StateFolderProblem` if it cannot be determined. */
  static holder(folder: string): string | null {
    const file = join(folder, LOCK_FILE);
    if (!existsSync(file)) return null;
    let database: DatabaseSync | null = null;
    try {
      database = new DatabaseSync(file, { timeout: 0, readOnly: true });
      database.exec(LOOK);
      return null;
    } catch (error) {
      if (isBusy(error)) return holderOf(join(folder, HOLDER_FILE));
      throw problemOf(folder, error);
    } finally {
      database?.close();
    }
  }

  /** Releases the folder for another server. Idempotent. */
  release(): void {
    if (!this.#database.isOpen) return;
    try {
      rmSync(this.#holderFile, { force: true });
    } catch {
      // The disk has become read-only: the lock is released all the same.
    }
    this.#database.close();
  }
}

/** Describes for the operator an `error` that occurred while opening the state folder. */
export function problemOf(folder: string, error: unknown): StateFolderProblem {
  const { code } = error as NodeJS.ErrnoException;
  const detail = messageOf(error);
  const why = REASONS[code ?? ''] ?? detail;
  return new StateFolderProblem(`state folder '${folder}' cannot be used: ${why}`, { cause: error });
}

/** For people only: a full disk must not stop the server. */
function warnOfHolder(file: string): void {
  try {
    writeFileSync(file, `${process.pid} ${hostname()}\n`);
  } catch (error) {
    if (!FULL.includes((error as NodeJS.ErrnoException).code)) throw error;
  }
}

const FULL: readonly (string | undefined)[] = ['ENOSPC', 'EDQUOT'];

const REASONS: Readonly<Record<string, string>> = {
  EEXIST: 'it is not a folder',
  ENOTDIR: 'it, or what it is to be in, is not a folder',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'its file system is read-only',
  ENOSPC: 'its file system is full',
};

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === BUSY;
}

function holderOf(file: string): string {
  const { pid = '', host = '' } = readHolder(file);
  if (pid === '') return 'another process';
  return host === hostname() ? `process ${pid}` : `process ${pid} on '${host}'`;
}

/** Empty if another process has just taken the lock, or the file was removed. */
function readHolder(file: string): { readonly pid?: string; readonly host?: string } {
  try {
    const [pid = '', host = ''] = readFileSync(file, 'utf8').trim().split(' ');
    return { pid, host };
  } catch {
    return {};
  }
}

/** The process on this machine that is named as holder of `folder`, or was killed as such; null if there is none. Takes no lock. */
export function holderOn(folder: string): number | null {
  const { pid = '', host } = readHolder(join(folder, HOLDER_FILE));
  return /^\d+$/.test(pid) && host === hostname() ? Number(pid) : null;
}
