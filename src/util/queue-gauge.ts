/** Measures a queue, in the form that the API reports. */
import type { Clock } from './clock.ts';

/** A queue's description, exactly as `GET /v2/internals/queues` prints it. */
export interface QueueStatus {
  readonly id: number;
  readonly urn: string;
  /** Kind of data carried. */
  readonly type: string;
  /** Messages waiting now. */
  readonly size: number;
  /** Largest `size` seen. */
  readonly peak: number;
  /** Messages the queue may hold. */
  readonly threshold: number;
  /** Messages dropped since creation. */
  readonly drop: number;
  readonly inputPerSecond: number;
  readonly outputPerSecond: number;
  /** Average time between push and shift, microseconds, over the last measuring second. */
  readonly avgWaitingTime: number;
}

/** The part of a queue's status that changes. */
export type QueueFigures = Omit<QueueStatus, 'id' | 'urn' | 'type' | 'threshold'>;

const MEASURE_INTERVAL_MS = 1000;

/** Name and measurement of a queue. */
export interface QueueGaugeOptions {
  readonly id: number;
  readonly urn: string;
  readonly type: string;
  /** 0: no limit. */
  readonly threshold: number;
  readonly clock: Clock;
  /** Divisor between counted and reported figures, for queues that count bytes. Default: 1. */
  readonly unit?: number;
}

/**
 * Figures of a queue whose owner reports arrivals and departures. The waiting time is the integral of the size over time divided by the
 * departures (Little's law), so nothing is stored per message.
 */
export class QueueGauge {
  readonly id: number;
  readonly urn: string;
  readonly type: string;
  readonly threshold: number;
  readonly #clock: Clock;
  readonly #unit: number;
  #size = 0;
  #peak = 0;
  #drop = 0;
  #inputs = 0;
  #outputs = 0;
  /** Sum of size times milliseconds since the last measurement. */
  #waited = 0;
  #changedAt: number;
  #measuredAt: number;
  #inputPerSecond = 0;
  #outputPerSecond = 0;
  #avgWaitingTime = 0;
  #mirrored: QueueFigures | null = null;
  /** Drops of mirrored queues that are gone. */
  #mirroredDrops = 0;

  constructor(options: QueueGaugeOptions) {
    this.id = options.id;
    this.urn = options.urn;
    this.type = options.type;
    this.threshold = options.threshold;
    this.#clock = options.clock;
    this.#unit = options.unit ?? 1;
    this.#measuredAt = this.#clock.monotonic();
    this.#changedAt = this.#measuredAt;
  }

  /** Present content. */
  get size(): number {
    return this.#size;
  }

  /** Messages dropped since creation. */
  get dropped(): number {
    return this.#drop;
  }

  /** `count` messages arrived at `now` (monotonic, ms). */
  came(count = 1, now = this.#clock.monotonic()): void {
    this.#advance(now);
    this.#size += count;
    this.#inputs += count;
    if (this.#size > this.#peak) this.#peak = this.#size;
  }

  /** `count` waiting messages left at `now`. */
  went(count = 1, now = this.#clock.monotonic()): void {
    this.#advance(now);
    this.#size -= count;
    this.#outputs += count;
    if (now - this.#measuredAt >= MEASURE_INTERVAL_MS) this.#measure(now);
  }

  /** Counts messages the owner dropped instead of queueing. */
  countDrop(count = 1): void {
    this.#drop += count;
  }

  /** Counts all waiting messages as dropped. */
  dropAll(): void {
    this.#advance(this.#clock.monotonic());
    this.#drop += this.#size;
    this.#size = 0;
  }

  /** Shows the figures of a queue in another process from now on; this gauge counts nothing itself. */
  mirror(figures: QueueFigures): void {
    if (this.#mirrored !== null && figures.drop < this.#mirrored.drop) this.#mirroredDrops += this.#mirrored.drop;
    this.#mirrored = figures;
  }

  /** Drops since creation and present content, in the unit of the status; also for queues of processes that are gone. */
  get figures(): { readonly drop: number; readonly size: number } {
    const { size, drop } = this.#mirrored ?? { size: Math.ceil(this.#size / this.#unit), drop: Math.ceil(this.#drop / this.#unit) };
    return { size, drop: this.#mirroredDrops + drop };
  }

  status(): QueueStatus {
    const { id, urn, type, threshold } = this;
    if (this.#mirrored !== null) {
      const { size, peak, drop, inputPerSecond, outputPerSecond, avgWaitingTime } = this.#mirrored;
      return { id, urn, type, size, peak, threshold, drop, inputPerSecond, outputPerSecond, avgWaitingTime };
    }
    const now = this.#clock.monotonic();
    if (now - this.#measuredAt >= MEASURE_INTERVAL_MS) this.#measure(now);
    return {
      ...{ id, urn, type, threshold },
      size: Math.ceil(this.#size / this.#unit),
      peak: Math.ceil(this.#peak / this.#unit),
      drop: Math.ceil(this.#drop / this.#unit),
      inputPerSecond: Math.round(this.#inputPerSecond / this.#unit),
      outputPerSecond: Math.round(this.#outputPerSecond / this.#unit),
      avgWaitingTime: this.#avgWaitingTime,
    };
  }

  #advance(now: number): void {
    this.#waited += this.#size * (now - this.#changedAt);
    this.#changedAt = now;
  }

  #measure(now: number): void {
    this.#advance(now);
    const seconds = (now - this.#measuredAt) / 1000;
    this.#inputPerSecond = this.#inputs / seconds;
    this.#outputPerSecond = this.#outputs / seconds;
    this.#avgWaitingTime = this.#outputs > 0 ? Math.round((this.#waited * 1000) / this.#outputs) : 0;
    this.#inputs = 0;
    this.#outputs = 0;
    this.#waited = 0;
    this.#measuredAt = now;
  }
}
