import type { Clock } from './clock.ts';

/** What a queue tells about itself: `GET /v2/internals/queues` prints exactly this. */
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
/** Messages there is room for at first: most queues never hold more. */
const FIRST_ROOM = 16;

/**
 * A FIFO of fixed capacity that measures itself. A push into a full queue is refused: the owner
 * applies its drop policy and reports with `countDrop`. Nothing is allocated per message; the room for them doubles as it is needed.
 */
export class BoundedQueue<T> {
  readonly id: number;
  readonly urn: string;
  readonly type: string;
  readonly threshold: number;
  readonly #clock: Clock;
  #items: (T | undefined)[];
  #arrivals: Float64Array;
  #head = 0;
  #size = 0;
  #peak = 0;
  #drop = 0;
  #inputs = 0;
  #outputs = 0;
  #waited = 0;
  #measuredAt: number;
  #inputPerSecond = 0;
  #outputPerSecond = 0;
  #avgWaitingTime = 0;
  #mirrored: QueueFigures | null = null;

  constructor(options: { id: number; urn: string; type: string; threshold: number; clock: Clock }) {
    this.id = options.id;
    this.urn = options.urn;
    this.type = options.type;
    this.threshold = options.threshold;
    this.#clock = options.clock;
    const room = Math.min(FIRST_ROOM, options.threshold);
    this.#items = new Array<T | undefined>(room).fill(undefined);
    this.#arrivals = new Float64Array(room);
    this.#measuredAt = this.#clock.monotonic();
  }

  get size(): number {
    return this.#size;
  }

  /** For how long the oldest message has waited, ms; 0 when there is none. */
  get oldestWait(): number {
    return this.#size === 0 ? 0 : this.#clock.monotonic() - (this.#arrivals[this.#head] ?? 0);
  }

  /** Messages dropped since creation. */
  get dropped(): number {
    return this.#drop;
  }

  get full(): boolean {
    return this.#size === this.threshold;
  }

  /** Appends `item`, which came at `now` (monotonic, ms); returns false, and leaves the queue as it was, when it is full. */
  push(item: T, now = this.#clock.monotonic()): boolean {
    if (this.#size === this.threshold) return false;
    if (this.#size === this.#items.length) this.#grow();
    const tail = (this.#head + this.#size) % this.#items.length;
    this.#items[tail] = item;
    this.#arrivals[tail] = now;
    this.#size += 1;
    this.#inputs += 1;
    if (this.#size > this.#peak) this.#peak = this.#size;
    return true;
  }

  /** Takes the oldest item, or undefined when empty. */
  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    const now = this.#clock.monotonic();
    this.#waited += now - (this.#arrivals[this.#head] ?? now);
    this.#head = (this.#head + 1) % this.#items.length;
    this.#size -= 1;
    this.#outputs += 1;
    if (now - this.#measuredAt >= MEASURE_INTERVAL_MS) this.#measure(now);
    return item;
  }

  /** Counts messages the owner dropped instead of queueing. */
  countDrop(count = 1): void {
    this.#drop += count;
  }

  /** Empties the queue and counts what was in it as dropped. */
  dropAll(): void {
    this.#drop += this.#size;
    this.#items.fill(undefined);
    this.#head = 0;
    this.#size = 0;
  }

  /** Shows the figures of a queue in another process from now on; this one holds nothing itself. */
  mirror(figures: QueueFigures): void {
    this.#mirrored = figures;
  }

  status(): QueueStatus {
    if (this.#mirrored !== null) {
      const { size, peak, drop, inputPerSecond, outputPerSecond, avgWaitingTime } = this.#mirrored;
      const { id, urn, type, threshold } = this;
      return { id, urn, type, size, peak, threshold, drop, inputPerSecond, outputPerSecond, avgWaitingTime };
    }
    const now = this.#clock.monotonic();
    if (now - this.#measuredAt >= MEASURE_INTERVAL_MS) this.#measure(now);
    return {
      id: this.id,
      urn: this.urn,
      type: this.type,
      size: this.#size,
      peak: this.#peak,
      threshold: this.threshold,
      drop: this.#drop,
      inputPerSecond: this.#inputPerSecond,
      outputPerSecond: this.#outputPerSecond,
      avgWaitingTime: this.#avgWaitingTime,
    };
  }

  #grow(): void {
    const room = Math.min(this.threshold, this.#items.length * 2);
    const items = new Array<T | undefined>(room).fill(undefined);
    const arrivals = new Float64Array(room);
    for (let at = 0; at < this.#size; at += 1) {
      const from = (this.#head + at) % this.#items.length;
      items[at] = this.#items[from];
      arrivals[at] = this.#arrivals[from] ?? 0;
    }
    this.#items = items;
    this.#arrivals = arrivals;
    this.#head = 0;
  }

  #measure(now: number): void {
    const seconds = (now - this.#measuredAt) / 1000;
    this.#inputPerSecond = Math.round(this.#inputs / seconds);
    this.#outputPerSecond = Math.round(this.#outputs / seconds);
    this.#avgWaitingTime = this.#outputs > 0 ? Math.round((this.#waited * 1000) / this.#outputs) : 0;
    this.#inputs = 0;
    this.#outputs = 0;
    this.#waited = 0;
    this.#measuredAt = now;
  }
}
