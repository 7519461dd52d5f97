/** Gives finished files their final names, without replacing existing files. */
import { link, lstat, open, rename, rm, unlink } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import type { AllowedFolders } from '../../util/allowed-folders.ts';

/** Names tried beside a target that exists already. */
const MAX_NUMBERS = 10_000;
/** Limit of file systems, bytes. */
const MAX_NAME = 255;
/** A longer text is not an extension but part of the name, bytes. */
const MAX_EXTENSION = 16;
/** Error codes of a file system without hard links. */
const NO_LINKS: readonly (string | undefined)[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

/**
 * `path` with `suffix` before its extension. A name that is too long is cut before both, between characters; `spare` bytes stay free at the
 * end.
 */
export function fitName(path: string, suffix = '', spare = 0): string {
  const name = basename(path);
  const found = extname(name);
  const extension = Buffer.byteLength(found) > MAX_EXTENSION ? '' : found;
  const base = name.slice(0, name.length - extension.length);
  const room = MAX_NAME - Buffer.byteLength(suffix + extension) - spare;
  if (Buffer.byteLength(base) <= room) return join(dirname(path), `${base}${suffix}${extension}`);
  const bytes = Buffer.from(base);
  let end = room;
  // Continuation bytes belong to the character before them.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return join(dirname(path), `${bytes.toString('utf8', 0, end)}${suffix}${extension}`);
}

/**
 * Renames `from` to `target`, or to a name with a number if that is taken, and returns the name. Never replaces a file. Rejects with
 * `PathRefused` or the file system's error; the file then has its old name.
 */
export async function giveName(from: string, target: string, folders: AllowedFolders): Promise<string> {
  await folders.makeFolder(dirname(target));
  for (let number = 0; number < MAX_NUMBERS; number += 1) {
    const path = fitName(target, number === 0 ? '' : `_${number}`);
    try {
      await link(from, path);
      await unlink(from);
      return path;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EEXIST') {
        if (!(await isSameFile(from, path))) continue;
        // The previous process had reached the second name.
        await unlink(from);
        return path;
      }
      if (!NO_LINKS.includes(code)) throw error;
      if (await moveTo(from, path)) return path;
    }
  }
  throw new Error(`${target} and ${MAX_NUMBERS} names beside it are taken`);
}

/**
 * For file systems without hard links: the name is reserved first, because a rename would replace an existing file. False if it is taken.
 */
async function moveTo(from: string, path: string): Promise<boolean> {
  try {
    await (await open(path, 'wx')).close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  try {
    await rename(from, path);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
  return true;
}

async function isSameFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([lstat(one), lstat(other)]);
  return a.ino === b.ino && a.dev === b.dev;
}
