/** Small disks that fill up quickly, and folders that cannot be written. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, statfsSync } from 'node:fs';
import { onTestFinished } from 'vitest';

/** A tmpfs of this many MiB, removed at the end of the test; null if mounting is impossible. */
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
 * Forbids writing below `at`, even to open files; null if that is impossible. The returned function permits writing again, as does the end
 * of the test.
 */
export function readOnly(at: string): (() => void) | null {
  const mount = (...args: string[]): void => void execFileSync('mount', [...args, at], { stdio: 'ignore' });
  try {
    // Another mount of the same folder covers it, through which no file is open.
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
