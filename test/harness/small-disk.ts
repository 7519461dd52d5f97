/** Disks that are soon full, or cannot be written at all. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, statfsSync } from 'node:fs';
import { onTestFinished } from 'vitest';

/** A tmpfs of this many MiB that ends with the test; null if none can be mounted. */
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

/**
 * Forbids writing below `at`, even to open files; null if that is impossible. The returned function allows writing again; the end of the
 * test does as well.
 */
export function readOnly(at: string): (() => void) | null {
  const mount = (...args: string[]): void => void execFileSync('mount', [...args, at], { stdio: 'ignore' });
  try {
    // Another mount of the same folder lies over it: nothing is open through that one.
    mount('--bind', at);
  } catch {
    return null;
  }
  let isMounted = true;
  const undo = (): void => {
    if (isMounted) execFileSync('umount', ['--lazy', at]);
    isMounted = false;
  };
  onTestFinished(undo);
  mount('-o', 'remount,bind,ro');
  return undo;
}

export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
