/** CPU time and memory of a process with all its threads and descendants, as counted by the kernel. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const MS_PER_TICK = 1000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** Positions in /proc/<pid>/stat after the command name, counted from the process state. */
const STAT_PARENT = 1;
const STAT_USER_TIME = 11;
const STAT_SYSTEM_TIME = 12;
const STAT_CHILDREN_USER_TIME = 13;
const STAT_CHILDREN_SYSTEM_TIME = 14;

/** Megabytes (2^20 bytes). */
export interface Memory {
  readonly resident: number;
  /** Shared pages divided among the processes that share them. */
  readonly proportional: number;
}

/** The fields of /proc/<pid>/stat after the command name, or null if the process is gone. */
function statFields(pid: number): readonly string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null; // The process ended between listing and reading.
  }
}

/** `root` and all its living descendants. */
export function processTree(root: number): readonly number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const fields = Number.isInteger(pid) ? statFields(pid) : null;
    if (fields === null) continue;
    const parent = Number(fields[STAT_PARENT]);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** CPU time used so far, ms: user and system, all threads, descendants alive and ended. */
export function cpuTime(root: number): number {
  let ticks = 0;
  for (const pid of processTree(root)) {
    const fields = statFields(pid);
    if (fields === null) continue;
    for (const at of [STAT_USER_TIME, STAT_SYSTEM_TIME, STAT_CHILDREN_USER_TIME, STAT_CHILDREN_SYSTEM_TIME]) ticks += Number(fields[at]);
  }
  return ticks * MS_PER_TICK;
}

/** CPU time used so far by the living threads of one process, ms: in nanoseconds, while `cpuTime` counts ticks. */
export function threadTime(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  let nanoseconds = 0;
  for (const task of readdirSync(tasks)) {
    try {
      nanoseconds += Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]);
    } catch {
      // The thread ended between listing and reading.
    }
  }
  return nanoseconds / 1e6;
}

/** Memory of the whole tree now. */
export function memory(root: number): Memory {
  let resident = 0;
  let proportional = 0;
  for (const pid of processTree(root)) {
    let text: string;
    try {
      text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    } catch {
      continue; // It ended between listing and reading.
    }
    resident += Number(/^Rss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1024;
    proportional += Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1024;
  }
  return { resident, proportional };
}
