/** Removes folders that killed servers have left in the folder for temporary files. */
import { lstat, readdir, rm, rmdir } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';

/** Prefix of the folders of `MainThreadServer`; six characters of `mkdtemp` follow. */
export const FOLDER_PREFIX = 'millrace-';
/** Name of the socket in the folder. */
export const SOCKET_NAME = 'signalling';
const NAME = new RegExp(`^${FOLDER_PREFIX}[A-Za-z0-9]{6}$`);
/** A younger folder may belong to a server that is just starting, ms. */
const YOUNG_MS = 60_000;
/** Maximum of our folders to check in one start. */
const MAX_FOLDERS = 100;
/** Maximum of names to check: other users may create names, which must not hide ours. */
const MAX_NAMES = 10_000;

/**
 * Removes folders in `place` that belong to this user, contain only our socket, and whose socket has no listener: the kernel knows that, so
 * reused process ids do not matter. Never rejects; returns the number of removed folders.
 */
export async function removeStaleFolders(place: string, now = Date.now()): Promise<number> {
  let removed = 0;
  const names = await readdir(place).catch(() => []);
  let looked = 0;
  for (const name of names.filter((one) => NAME.test(one)).slice(0, MAX_NAMES)) {
    const folder = path.join(place, name);
    try {
      if (!(await isOurs(folder, now))) continue;
      looked += 1;
      if (looked > MAX_FOLDERS) break;
      if (!(await isStale(folder))) continue;
      await rm(path.join(folder, SOCKET_NAME), { force: true });
      // Fails if a file has been added.
      await rmdir(folder);
      removed += 1;
    } catch {
      // Another process was quicker, or this user has no permission.
    }
  }
  return removed;
}

async function isOurs(folder: string, now: number): Promise<boolean> {
  const about = await lstat(folder);
  return about.isDirectory() && about.uid === process.getuid?.() && now - about.ctimeMs >= YOUNG_MS;
}

async function isStale(folder: string): Promise<boolean> {
  const entries = await readdir(folder);
  if (entries.length === 0) return true;
  if (entries.length > 1 || entries[0] !== SOCKET_NAME) return false;
  const file = path.join(folder, SOCKET_NAME);
  const socket = await lstat(file);
  return socket.isSocket() && socket.uid === process.getuid?.() && (await isDead(file));
}

function isDead(file: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = connect(file);
  probe.on('connect', () => {
    probe.destroy();
    resolve(false);
  });
  probe.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  return promise;
}
