/** Small statistics, and CPU measured over a span of time. */
import { setTimeout as delay } from 'node:timers/promises';
import { cpuTime } from './process-usage.ts';

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Linear interpolation between the two nearest values; NaN when there are none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  const position = ((sorted.length - 1) * percent) / 100;
  const low = sorted[Math.floor(position)] ?? Number.NaN;
  const high = sorted[Math.ceil(position)] ?? Number.NaN;
  return low + (high - low) * (position - Math.floor(position));
}

/** CPU milliseconds per second of wall time that `pid` and its descendants use during `seconds`. */
export async function cpuRate(pid: number, seconds: number): Promise<number> {
  const startedAt = performance.now();
  const before = cpuTime(pid);
  await delay(seconds * 1000);
  return (cpuTime(pid) - before) / ((performance.now() - startedAt) / 1000);
}

/** CPU milliseconds that `pid` uses while `work` runs, less what it uses anyway (`idleRate`, ms per second). */
export async function cpuDuring<T>(pid: number, idleRate: number, work: () => Promise<T>): Promise<{ cpuMs: number; result: T }> {
  const startedAt = performance.now();
  const before = cpuTime(pid);
  const result = await work();
  const seconds = (performance.now() - startedAt) / 1000;
  return { cpuMs: cpuTime(pid) - before - idleRate * seconds, result };
}
