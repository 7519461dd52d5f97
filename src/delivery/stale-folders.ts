/** Clears away what servers that were killed have left in the folder for temporary files. */
import { lstat, readdir, rm, rmdir } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';

/** Begins the names of the folders of `MainThreadServer`; six characters of `mkdtemp` follow. */
export const FOLDER_PREFIX = 'millrace-';
/** The socket in them. */
export const SOCKET_NAME = 'signalling';
const NAME = new RegExp(`^${FOLDER_PREFIX}[A-Za-z0-9]{6}$`);
/** A younger one may belong to a server that is just starting, ms. */
const YOUNG_MS = 60_000;
/** Folders of ours looked into in one start. */
const MAX_FOLDERS = 100;
/** Names looked at: others may have put theirs there, and they are not to hide ours. */
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
      // Fails when something has come into it.
      await rmdir(folder);
      removed += 1;
    } catch {
      // Somebody else was quicker, or it is not for us.
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
