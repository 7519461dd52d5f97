import { QueueGauge, type QueueGaugeOptions } from './queue-gauge.ts';

/** Initial capacity of the array in messages: most queues never hold more. */
const FIRST_ROOM = 16;

/**
 * A FIFO of fixed capacity that measures itself. It refuses a push when it is full: the owner applies its drop policy and reports with
 * `countDrop`. Nothing is allocated per message; the array doubles when needed.
 */
export class BoundedQueue<T> extends QueueGauge {
  readonly #clock: QueueGaugeOptions['clock'];
  #items: (T | undefined)[];
  #arrivals: Float64Array;
  #head = 0;

  constructor(options: Omit<QueueGaugeOptions, 'unit'>) {
    super(options);
    this.#clock = options.clock;
    const room = Math.min(FIRST_ROOM, options.threshold);
    this.#items = new Array<T | undefined>(room).fill(undefined);
    this.#arrivals = new Float64Array(room);
  }

  /** Waiting time of the oldest message, ms; 0 if empty. */
  get oldestWait(): number {
    return this.size === 0 ? 0 : this.#clock.monotonic() - (this.#arrivals[this.#head] ?? 0);
  }

  get full(): boolean {
    return this.size === this.threshold;
  }

  /** Appends `item`, which arrived at `now` (monotonic, ms). Returns false, without any change, when the queue is full. */
  push(item: T, now = this.#clock.monotonic()): boolean {
    if (this.full) return false;
    if (this.size === this.#items.length) this.#grow();
    const tail = (this.#head + this.size) % this.#items.length;
    this.#items[tail] = item;
    this.#arrivals[tail] = now;
    this.came(1, now);
    return true;
  }

  /** Takes the oldest item, or undefined when empty. */
  shift(): T | undefined {
    if (this.size === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head = (this.#head + 1) % this.#items.length;
    this.went();
    return item;
  }

  /** Empties the queue and counts its messages as dropped. */
  override dropAll(): void {
    super.dropAll();
    this.#items.fill(undefined);
    this.#head = 0;
  }

  #grow(): void {
    const room = Math.min(this.threshold, this.#items.length * 2);
    const items = new Array<T | undefined>(room).fill(undefined);
    const arrivals = new Float64Array(room);
    for (let at = 0; at < this.size; at += 1) {
      const from = (this.#head + at) % this.#items.length;
      items[at] = this.#items[from];
      arrivals[at] = this.#arrivals[from] ?? 0;
    }
    this.#items = items;
    this.#arrivals = arrivals;
    this.#head = 0;
  }
}
