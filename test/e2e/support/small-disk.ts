/** Disks that are soon full, or cannot be written at all. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, statfsSync } from 'node:fs';
import { onTestFinished } from 'vitest';

/** A tmpfs of so many MiB that goes with the test; null where none can be mounted. */
export function smallDisk(at: string, size = 20): string | null {
  mkdirSync(at, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}m`, 'tmpfs', at], { stdio: 'ignore' });
  } catch {
    return null;
  }
  onTestFinished(() => void execFileSync('umount', ['--lazy', at]));
  return at;
}

/** Lets nothing be written to it any more, or again. */
export function remount(at: string, mode: 'ro' | 'rw'): void {
  execFileSync('mount', ['-o', `remount,${mode}`, at], { stdio: 'ignore' });
}

export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
