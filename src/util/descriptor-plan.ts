/** Divides the process's file descriptors among their users. */
import { readdirSync, readFileSync } from 'node:fs';

/** Maximum for encoders: they are few, and each has one. */
const MAX_ENCODERS = 4096;
/** Maximum of the reserve. */
const MAX_RESERVED = 4096;
/** Descriptors that a new process opens for itself: ports, pipes, the native addon. */
const OWN = 24;
/** Descriptors of each delivery thread: its event loop and its ports. */
const OWN_OF_THREAD = 10;

/** Numbers of descriptors. */
export interface DescriptorPlan {
  /** For connections of viewers, over all protocols and threads. */
  readonly viewers: number;
  /** For connections of encoders. */
  readonly encoders: number;
  /** For the API, state, recordings, pushes, pulls and transcoders. */
  readonly reserve: number;
}

/**
 * Divides `limit` descriptors, of which `used` are in use, for a server with `threads` delivery threads: up to a quarter each for encoders
 * and in reserve, the rest for viewers. So viewers are refused first.
 */
export function planDescriptors({ limit, used, threads }: { limit: number; used: number; threads: number }): DescriptorPlan {
  const free = Math.max(4, limit - used - OWN - threads * OWN_OF_THREAD);
  const quarter = Math.floor(free / 4);
  const encoders = Math.min(MAX_ENCODERS, quarter);
  const reserve = Math.min(MAX_RESERVED, quarter);
  return { viewers: free - encoders - reserve, encoders, reserve };
}

/**
 * RLIMIT_NOFILE of this process and its number of open descriptors; null where the system does not report them. Node.js has raised the soft
 * limit already.
 */
export function descriptorLimit(): { readonly limit: number; readonly used: number } | null {
  try {
    const limit = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    if (limit === undefined) return null;
    const used = readdirSync('/proc/self/fd').length;
    return { limit: limit === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(limit), used };
  } catch {
    return null;
  }
}
