/** Statistics, and CPU measured over a span of time. */
import { setTimeout as delay } from 'node:timers/promises';
import { cpuTime } from './process-usage.ts';

const SETTLE_SECONDS = 15;
const IDLE_MS_PER_SECOND = 20;

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Linear interpolation between the two nearest values; NaN without values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  const position = ((sorted.length - 1) * percent) / 100;
  const low = sorted[Math.floor(position)] ?? Number.NaN;
  const high = sorted[Math.ceil(position)] ?? Number.NaN;
  return low + (high - low) * (position - Math.floor(position));
}

/** CPU ms per second that `pid` and its descendants use during `seconds`. */
export async function cpuRate(pid: number, seconds: number): Promise<number> {
  const startedAt = performance.now();
  const before = cpuTime(pid);
  await delay(seconds * 1000);
  return (cpuTime(pid) - before) / ((performance.now() - startedAt) / 1000);
}

/** CPU ms per second of a program after its start: waits until it uses little CPU. Throws if it never does. */
export async function idleCpuRate(pid: number): Promise<number> {
  for (let second = 0; second < SETTLE_SECONDS; second += 1) {
    const rate = await cpuRate(pid, 1);
    if (rate <= IDLE_MS_PER_SECOND) return rate;
  }
  throw new Error(`process ${pid} still uses more than ${IDLE_MS_PER_SECOND} ms of CPU a second after ${SETTLE_SECONDS} s`);
}

/** CPU milliseconds that `pid` uses while `work` runs, minus its idle use (`idleRate`, ms per second). */
export async function cpuDuring<T>(pid: number, idleRate: number, work: () => Promise<T>): Promise<{ cpuMs: number; result: T }> {
  const startedAt = performance.now();
  const before = cpuTime(pid);
  const result = await work();
  const seconds = (performance.now() - startedAt) / 1000;
  return { cpuMs: cpuTime(pid) - before - idleRate * seconds, result };
}
