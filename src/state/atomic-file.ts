import { randomBytes } from 'node:crypto';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncTurns } from '../util/turns.ts';

/**
 * Replaces `path` by `content` so that a crash at any moment leaves the old or the new file, never a
 * mixture: temporary file beside it, fsync, rename, fsync of the folder. Throws the file system's error
 * (for example ENOSPC); the old file is then untouched.
 */
export async function writeFileAtomic(path: string, content: string, mode = 0o644): Promise<void> {
  await replaceFile(path, content, { mode, flush: true });
  await syncPath(dirname(path));
}

/**
 * Like `writeFileAtomic`, but it resolves as soon as the new file survives the death of this process. `durable` resolves
 * when it survives a loss of power too, and rejects with the file system's error when that cannot be had.
 */
export async function writeFileSoon(path: string, content: string, mode = 0o644): Promise<{ readonly durable: Promise<void> }> {
  await replaceFile(path, content, { mode, flush: false });
  return { durable: syncPath(path).then(() => syncPath(dirname(path))) };
}

async function replaceFile(path: string, content: string, options: { readonly mode: number; readonly flush: boolean }): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const write = (): Promise<void> => writeFile(temporary, content, { flag: 'wx', encoding: 'utf8', ...options });
    await (options.flush ? syncTurns.take(write) : write());
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Removes `path` durably; a missing file is fine. */
export async function removeFileDurable(path: string): Promise<void> {
  await rm(path, { force: true });
  await syncPath(dirname(path));
}

/** Files and folders alike. */
async function syncPath(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await syncTurns.take(() => folder.sync());
  } finally {
    await folder.close();
  }
}
