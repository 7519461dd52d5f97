/** CPU time of a process and its children, from Linux's /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** `USER_HZ`, which Linux fixes for user space. */
const TICKS_PER_SECOND = 100;

interface Stat {
  readonly parent: number;
  /** Microseconds of user and system time, all threads together. */
  readonly cpu: number;
}

function stat(pid: number): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command name may hold blanks and brackets; what follows its last bracket does not.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(fields[11]) + Number(fields[12]);
    return { parent: Number(fields[1]), cpu: (ticks * 1_000_000) / TICKS_PER_SECOND };
  } catch {
    return null;
  }
}

/** Microseconds of CPU used so far by `root` and all its living descendants. */
export function treeCpu(root: number): number {
  const all = new Map<number, Stat>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const entry = Number.isInteger(pid) ? stat(pid) : null;
    if (entry !== null) all.set(pid, entry);
  }
  const belongs = (pid: number): boolean => pid === root || (all.has(pid) && belongs(all.get(pid)?.parent ?? 0));
  let cpu = 0;
  for (const [pid, entry] of all) if (belongs(pid)) cpu += entry.cpu;
  return cpu;
}
