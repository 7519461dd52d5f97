/** Resources of a server process: memory, descriptors by kind, threads, children. Linux. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Diagnostics } from './diagnostics.ts';

const MIB = 2 ** 20;

/** Figures by name; memory in MiB, all others as counts. */
export type ProcessSample = Readonly<Record<string, number>>;

/** Reads the kernel's figures and, over the socket `diagnostics`, the process's own. */
export async function sampleProcess(pid: number, diagnostics: string): Promise<ProcessSample> {
  const told = JSON.parse(await text(connect(diagnostics))) as Diagnostics;
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return {
    'resident MiB': Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024,
    'heap MiB': told.heapUsed / MIB,
    'external MiB': told.external / MIB,
    threads: Number(/^Threads:\s+(\d+)/m.exec(status)?.[1] ?? 0),
    children: childrenOf(pid).length,
    ...descriptors(pid),
    ...Object.fromEntries(Object.entries(told.resources).map(([kind, count]) => [`active ${kind}`, count])),
  };
}

/** Running processes started by `pid`. */
export function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readOr(`/proc/${pid}/task/${task}/children`, '').split(' ').filter(Boolean).map(Number),
  );
}

/** Whether `pid` handles the signal `number` itself. */
export function handlesSignal(pid: number, number: number): boolean {
  const caught = /^SigCgt:\s+([0-9a-f]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0';
  return ((BigInt(`0x${caught}`) >> BigInt(number - 1)) & 1n) === 1n;
}

/** Open descriptors: sockets, pipes, anonymous inodes and files, each under `fd`. */
function descriptors(pid: number): Record<string, number> {
  const counts: Record<string, number> = { 'fd socket': 0, 'fd pipe': 0, 'fd anon_inode': 0, 'fd file': 0 };
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    const kind = `fd ${/^(socket|pipe|anon_inode):/.exec(linkOr(`/proc/${pid}/fd/${name}`, ''))?.[1] ?? 'file'}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return otherwise; // The thread has ended.
  }
}

function linkOr(path: string, otherwise: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return otherwise; // It was closed meanwhile.
  }
}
