/** How much room a disk has. */
import { randomUUID } from 'node:crypto';
import { rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Free space before a write that found no room is retried, bytes. */
const ROOM_BYTES = 16 * 1024 * 1024;
/** A disk with less free space than this, bytes, is low. */
const LOW_BYTES = 1024 * 1024 * 1024;
/** On a small disk this share of its size replaces both limits. */
const SHARE = 0.05;
const PROBE_BYTES = 64 * 1024;

/** A disk as this user may fill it. */
export interface DiskSpace {
  /** Bytes. */
  readonly free: number;
  readonly size: number;
  /** Files that can still be made; Infinity where the file system has no limit. */
  readonly freeFiles: number;
}

/** The space of the disk that `folder` is on. Rejects with the file system's error. */
export async function diskSpace(folder: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize, files, ffree } = await statfs(folder);
  return { free: bavail * bsize, size: blocks * bsize, freeFiles: files === 0 ? Number.POSITIVE_INFINITY : ffree };
}

/** True when it is time to make room: less than 1 GiB is free, and less than a twentieth. */
export function isLow({ free, size }: DiskSpace): boolean {
  return free < Math.min(LOW_BYTES, size * SHARE);
}

/** True when a new file can be written into the existing `folder`: there is free space, and a small file can be made. Never rejects. */
export async function hasRoom(folder: string): Promise<boolean> {
  try {
    const { free, size } = await diskSpace(folder);
    if (free < Math.min(ROOM_BYTES, size * SHARE)) return false;
    await probe(folder);
    return true;
  } catch {
    return false;
  }
}

/** Makes a small file in `folder` and removes it. Rejects with the file system's error. */
async function probe(folder: string): Promise<void> {
  const path = join(folder, `.room-${randomUUID()}.tmp`);
  try {
    await writeFile(path, Buffer.alloc(PROBE_BYTES), { flag: 'wx' });
  } finally {
    await rm(path, { force: true });
  }
}
