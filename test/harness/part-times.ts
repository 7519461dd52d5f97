/**
 * Arrival times of the parts of a media playlist, measured by a simple client on a separate thread, so that a busy test delays no part.
 */
import { Worker } from 'node:worker_threads';
import type { TimedPart } from './part-times-thread.ts';

/** Delay of a part after its media at which a player with a hold-back of three parts has to wait, s. */
const LATE_S = 0.5;
/** Time around a boundary, s. */
const AROUND_S = 2;

/** Follows one media playlist until `stop`. */
export class PartTimes {
  readonly #worker: Worker;
  readonly #name: string;
  readonly #parts = Promise.withResolvers<readonly TimedPart[]>();

  constructor(name: string, url: string) {
    this.#name = name;
    this.#worker = new Worker(new URL('./part-times-thread.ts', import.meta.url), { workerData: url });
    this.#worker.once('message', (parts) => this.#parts.resolve(parts));
    this.#worker.once('error', (error) => this.#parts.reject(error));
    // The rejection is reported by `stop`, which a failed test may never call.
    this.#parts.promise.catch(() => undefined);
  }

  /**
   * Ends the requests. Returns a line for each discontinuity, and for each late part elsewhere, to explain errors of players. Idempotent.
   */
  async stop(): Promise<string[]> {
    this.#worker.postMessage('stop');
    const parts = await this.#parts.promise;
    // The offset between date-times and the clock is equal for all parts.
    const least = Math.min(...parts.map(({ at, end }) => at / 1000 - end));
    const timed = parts.map((part) => ({ ...part, late: part.at / 1000 - part.end - least }));
    const splices = timed.filter(({ discontinuity, part }) => discontinuity && part === 0);
    const lines = splices.map(({ msn, start, at }) => {
      const around = timed.filter((part) => Math.abs(part.start - start) < AROUND_S);
      const told = around.map((part) => `${part.msn}.${part.part} ${part.duration.toFixed(3)} s ${ms(part.late)} late`);
      return `${this.#name}: segment ${msn} begins at ${timeOf(start)}, listed at ${timeOf(at / 1000)}: ${told.join(', ')}`;
    });
    const isNear = (start: number): boolean => splices.some((splice) => Math.abs(splice.start - start) < AROUND_S);
    const late = timed.filter((part) => part.late > LATE_S && !isNear(part.start));
    return [
      ...lines,
      ...late.map((part) => `${this.#name}: part ${part.msn}.${part.part} of ${timeOf(part.start)} was ${ms(part.late)} late`),
      `${this.#name}: ${timed.length} parts, ${ms(Math.max(0, ...timed.map((part) => part.late)))} late at most`,
    ];
  }
}

function ms(seconds: number): string {
  return `${Math.round(seconds * 1000)} ms`;
}

function timeOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(14, 23);
}
