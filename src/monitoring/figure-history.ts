/** The figures of the last hour, so that a new client sees the past. */
import { performance } from 'node:perf_hooks';
import type { TrafficMeter } from '../core/traffic-meter.ts';
import type { Clock } from '../util/clock.ts';

/** Interval of samples, ms. */
export const SAMPLE_MS = 10_000;
/** Samples of an hour. */
const MAX_KEPT = 360;
const US_PER_MS = 1000;

/** Figures of one moment. Rates are means since the previous sample. */
export interface FigureSample {
  /** Wall clock, ms. */
  readonly at: number;
  /** Bytes per second. */
  readonly throughputIn: number;
  readonly throughputOut: number;
  /** Sessions by publisher; publishers without sessions are absent. */
  readonly connections: Readonly<Record<string, number>>;
  /** Cores in use by the server, without transcoder processes. */
  readonly cpu: number;
  /** Share of the time in which the event loop of the main thread was busy, from 0 to 1. */
  readonly eventLoop: number;
  /** Resident memory, bytes. */
  readonly memory: number;
}

/** Resources of the process. */
export interface ProcessUse {
  /** CPU time since its start, us. */
  readonly cpu: number;
  /** Time in which the event loop was busy, ms since its start. */
  readonly active: number;
  readonly memory: number;
}

function useOfProcess(): ProcessUse {
  const { user, system } = process.cpuUsage();
  const { active } = performance.eventLoopUtilization();
  return { cpu: user + system, active, memory: process.memoryUsage.rss() };
}

interface Totals {
  readonly at: number;
  readonly in: number;
  readonly out: number;
  readonly cpu: number;
  readonly active: number;
}

/** A ring of samples, one every ten seconds from `start` on. Its starter stops it. */
export class FigureHistory {
  readonly #clock: Clock;
  readonly #meter: TrafficMeter;
  readonly #use: () => ProcessUse;
  readonly #samples: FigureSample[] = [];
  #before: Totals;
  #timer: NodeJS.Timeout | null = null;

  /** `meter`: that of the server. `use` is for tests. */
  constructor(clock: Clock, meter: TrafficMeter, use = useOfProcess) {
    this.#clock = clock;
    this.#meter = meter;
    this.#use = use;
    this.#before = this.#totals(use());
  }

  /** Samples, oldest first. */
  get samples(): readonly FigureSample[] {
    return this.#samples;
  }

  /** Idempotent. */
  start(): void {
    this.#timer ??= setInterval(() => this.take(), SAMPLE_MS).unref();
  }

  /** Takes a sample; a timer calls it. */
  take(): void {
    const use = this.#use();
    const [before, now] = [this.#before, this.#totals(use)];
    const ms = now.at - before.at;
    if (ms <= 0) return;
    this.#before = now;
    const connections = Object.fromEntries(Object.entries(this.#meter.sessions).filter(([, count]) => count > 0));
    const perSecond = (bytes: number): number => Math.round((bytes * 1000) / ms);
    this.#samples.push({
      ...{ at: this.#clock.now(), throughputIn: perSecond(now.in - before.in), throughputOut: perSecond(now.out - before.out) },
      ...{ connections, cpu: (now.cpu - before.cpu) / US_PER_MS / ms, memory: use.memory },
      // At most 1: the two clocks are read one after the other.
      eventLoop: Math.min(1, (now.active - before.active) / ms),
    });
    if (this.#samples.length > MAX_KEPT) this.#samples.shift();
  }

  /** Idempotent. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #totals({ cpu, active }: ProcessUse): Totals {
    return { at: this.#clock.monotonic(), in: this.#meter.in.total, out: this.#meter.out.total, cpu, active };
  }
}
