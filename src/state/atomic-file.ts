import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Replaces `path` by `content` so that a crash at any moment leaves the old or the new file, never a
 * mixture: temporary file beside it, fsync, rename, fsync of the folder. Throws the file system's error
 * (for example ENOSPC); the old file is then untouched.
 */
export async function writeFileAtomic(path: string, content: string, mode = 0o644): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const file = await open(temporary, 'wx', mode);
    try {
      await file.writeFile(content, 'utf8');
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Removes `path` durably; a missing file is fine. */
export async function removeFileDurable(path: string): Promise<void> {
  await rm(path, { force: true });
  await syncFolder(dirname(path));
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
