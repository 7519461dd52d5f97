import { BoundedQueue } from '../util/bounded-queue.ts';
import type { Clock } from '../util/clock.ts';
import { QueueGauge, type QueueStatus } from '../util/queue-gauge.ts';

/** Makes the queues of the server and knows the ones that exist, so that `/v2/internals/queues` can list them. */
export class QueueRegistry {
  readonly #clock: Clock;
  readonly #queues = new Map<number, QueueGauge>();
  #nextId = 100;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  create<T>(options: { urn: string; type: string; threshold: number }): BoundedQueue<T> {
    const queue = new BoundedQueue<T>({ ...options, id: this.#nextId, clock: this.#clock });
    this.#nextId += 1;
    this.#queues.set(queue.id, queue);
    return queue;
  }

  /** A gauge for what waits in a shape of its own; `unit` is what one counted message is divided by. */
  gauge(options: { urn: string; type: string; threshold: number; unit?: number }): QueueGauge {
    const gauge = new QueueGauge({ ...options, id: this.#nextId, clock: this.#clock });
    this.#nextId += 1;
    this.#queues.set(gauge.id, gauge);
    return gauge;
  }

  remove(queue: { readonly id: number }): void {
    this.#queues.delete(queue.id);
  }

  /** Every queue, by id. */
  statuses(): QueueStatus[] {
    return Array.from(this.#queues.values(), (queue) => queue.status());
  }
}
