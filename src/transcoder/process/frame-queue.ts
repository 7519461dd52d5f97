import { BoundedQueue } from '../../util/bounded-queue.ts';
import type { Clock } from '../../util/clock.ts';

/** A bounded queue between two loops of a process: `put` waits while it is full, `take` while it is empty. */
export class FrameQueue<T> {
  readonly queue: BoundedQueue<T>;
  #closed = false;
  #taker: (() => void) | null = null;
  #putter: (() => void) | null = null;

  constructor(options: { role: string; type: string; threshold: number; clock: Clock }) {
    this.queue = new BoundedQueue<T>({ id: 0, urn: options.role, type: options.type, threshold: options.threshold, clock: options.clock });
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Appends without waiting; false when the queue is full or closed. */
  offer(item: T): boolean {
    if (this.#closed || !this.queue.push(item)) return false;
    this.#wake();
    return true;
  }

  /** Appends, waiting for room; false if the queue was closed instead. Only one call may wait. */
  async put(item: T): Promise<boolean> {
    while (!this.#closed && this.queue.full) {
      await new Promise<void>((resolve) => {
        this.#putter = resolve;
      });
    }
    return this.offer(item);
  }

  /** The next item; undefined once the queue is closed and empty. Only one call may wait. */
  async take(): Promise<T | undefined> {
    while (!this.#closed && this.queue.size === 0) {
      await new Promise<void>((resolve) => {
        this.#taker = resolve;
      });
    }
    const item = this.queue.shift();
    const putter = this.#putter;
    this.#putter = null;
    putter?.();
    return item;
  }

  /** Refuses further frames; queued ones can still be taken. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#wake();
    const putter = this.#putter;
    this.#putter = null;
    putter?.();
  }

  #wake(): void {
    const taker = this.#taker;
    this.#taker = null;
    taker?.();
  }
}
