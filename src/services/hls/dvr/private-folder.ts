/** Folders that only this user can write to, also below a folder that everyone can write to. */
import { lstat, mkdir, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { AllowedFolders } from '../../../util/allowed-folders.ts';

/** No access for other users. */
const MODE = 0o700;
const WRITABLE_BY_ALL = 0o002;
const STICKY = 0o1000;

/**
 * Makes `root`, if missing, and the folders `below` one inside the other. Rejects with `PathRefused` where `allowed` forbids it, with an
 * `Error` for a folder or link of another user, and with the file system's error.
 */
export async function makePrivateFolders(root: string, below: readonly string[], allowed: AllowedFolders): Promise<void> {
  await allowed.makeFolder(dirname(root));
  if (!(await makeFolder(root))) await refuseStrangeRoot(root);
  await allowed.checkLinks(root);
  for (const folder of below) if (!(await makeFolder(folder))) await refuseForeign(folder);
}

/** Whether `path` is a folder of this user, and not a link to one. */
export async function isOwnFolder(path: string): Promise<boolean> {
  try {
    const found = await lstat(path);
    return found.isDirectory() && found.uid === process.getuid?.();
  } catch {
    return false;
  }
}

/** False when something of that name is there already. */
async function makeFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: MODE });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function refuseForeign(path: string): Promise<void> {
  if (!(await isOwnFolder(path))) throw new Error(`${path} is not a folder of this server: another user may have made it`);
}

/** The operator may name any folder or link; in a folder that everyone can write to, it must belong to this user. */
async function refuseStrangeRoot(root: string): Promise<void> {
  const { mode } = await stat(root);
  if ((mode & WRITABLE_BY_ALL) !== 0 && (mode & STICKY) === 0)
    throw new Error(`${root} is not used: every user can write to it, and could remove its files`);
  const parent = await stat(dirname(await realpath(root)));
  const place = await stat(dirname(root));
  if (((parent.mode | place.mode) & WRITABLE_BY_ALL) !== 0) await refuseForeign(root);
}
