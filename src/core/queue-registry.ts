import { BoundedQueue, type QueueStatus } from '../util/bounded-queue.ts';
import type { Clock } from '../util/clock.ts';

/** Makes the queues of the server and knows the ones that exist, so that `/v2/internals/queues` can list them. */
export class QueueRegistry {
  readonly #clock: Clock;
  readonly #queues = new Map<number, BoundedQueue<unknown>>();
  #nextId = 100;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  create<T>(options: { urn: string; type: string; threshold: number }): BoundedQueue<T> {
    const queue = new BoundedQueue<T>({ ...options, id: this.#nextId, clock: this.#clock });
    this.#nextId += 1;
    this.#queues.set(queue.id, queue as BoundedQueue<unknown>);
    return queue;
  }

  remove(queue: { readonly id: number }): void {
    this.#queues.delete(queue.id);
  }

  /** Every queue, by id. */
  statuses(): QueueStatus[] {
    return Array.from(this.#queues.values(), (queue) => queue.status());
  }
}
