import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncSemaphore } from '../util/semaphore.ts';

/**
 * Replaces `path` by `content` so that a crash at any moment leaves the old or the new file, never a
 * mixture: temporary file beside it, fsync, rename, fsync of the folder. Throws the file system's error
 * (for example ENOSPC); the old file is then untouched. Content in pieces is written piece by piece: other work may run between them.
 */
export async function writeFileAtomic(path: string, content: string | Iterable<string>, mode = 0o644): Promise<void> {
  const temporary = temporaryOf(path);
  try {
    await syncSemaphore.take(() => writeFile(temporary, content, { flag: 'wx', encoding: 'utf8', mode, flush: true }));
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncPath(dirname(path));
}

/**
 * Like `writeFileAtomic`, but it resolves as soon as the new file survives the death of this process. `durable` resolves when it survives a
 * loss of power too, and rejects with the file system's error if it may not.
 */
export async function writeFileSoon(path: string, content: string, mode = 0o644): Promise<{ readonly durable: Promise<void> }> {
  const temporary = temporaryOf(path);
  const file = await open(temporary, 'wx', mode);
  try {
    await file.writeFile(content, 'utf8');
    await rename(temporary, path);
  } catch (error) {
    await file.close();
    await rm(temporary, { force: true });
    throw error;
  }
  // The file stays open until then, so that waiting for it takes no longer than necessary.
  return { durable: syncAndClose(file).then(() => syncPath(dirname(path))) };
}

function temporaryOf(path: string): string {
  return `${path}.${randomBytes(6).toString('hex')}.tmp`;
}

/** Removes `path` durably; a missing file is fine. */
export async function removeFileDurable(path: string): Promise<void> {
  await rm(path, { force: true });
  await syncPath(dirname(path));
}

/** Flushes a file or a folder. */
async function syncPath(path: string): Promise<void> {
  await syncAndClose(await open(path, 'r'));
}

async function syncAndClose(file: FileHandle): Promise<void> {
  try {
    await syncSemaphore.take(() => file.sync());
  } finally {
    await file.close();
  }
}
