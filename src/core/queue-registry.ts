import { BoundedQueue } from '../util/bounded-queue.ts';
import type { Clock } from '../util/clock.ts';
import { QueueGauge, type QueueStatus } from '../util/queue-gauge.ts';

/** Makes the queues of the server and keeps the existing ones, so that `/v2/internals/queues` can list them. */
export class QueueRegistry {
  readonly #clock: Clock;
  readonly #queues = new Map<number, { readonly queue: QueueGauge; readonly kind: string }>();
  /** Dropped by queues that are gone, by kind. */
  readonly #dropped = new Map<string, number>();
  #nextId = 100;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  create<T>(options: { urn: string; type: string; threshold: number }): BoundedQueue<T> {
    const queue = new BoundedQueue<T>({ ...options, id: this.#nextId, clock: this.#clock });
    this.#nextId += 1;
    this.#queues.set(queue.id, { queue, kind: queueKind(queue.urn) });
    return queue;
  }

  /** A gauge for a queue of another shape; counts are divided by `unit`. */
  gauge(options: { urn: string; type: string; threshold: number; unit?: number }): QueueGauge {
    const gauge = new QueueGauge({ ...options, id: this.#nextId, clock: this.#clock });
    this.#nextId += 1;
    this.#queues.set(gauge.id, { queue: gauge, kind: queueKind(gauge.urn) });
    return gauge;
  }

  remove(queue: { readonly id: number }): void {
    const gone = this.#queues.get(queue.id);
    if (gone !== undefined) this.#dropped.set(gone.kind, (this.#dropped.get(gone.kind) ?? 0) + gone.queue.figures.drop);
    this.#queues.delete(queue.id);
  }

  /** Contents of all queues of a kind, and drops of these and of earlier ones. */
  get totals(): ReadonlyMap<string, { size: number; drop: number }> {
    const totals = new Map(Array.from(this.#dropped, ([kind, drop]) => [kind, { size: 0, drop }]));
    for (const { queue, kind } of this.#queues.values()) {
      const { figures } = queue;
      const sum = totals.get(kind);
      if (sum === undefined) totals.set(kind, { ...figures });
      else {
        sum.size += figures.size;
        sum.drop += figures.drop;
      }
    }
    return totals;
  }

  /** Every queue, by id. */
  get gauges(): QueueGauge[] {
    return Array.from(this.#queues.values(), ({ queue }) => queue);
  }

  /** The state of every queue, by id. */
  statuses(): QueueStatus[] {
    return this.gauges.map((queue) => queue.status());
  }
}

/** The queue's owner, from its name: `inbound`, `decoder`, `encoder`, `push`, `file`, `egress` and the like. */
function queueKind(urn: string): string {
  // Stream names have no colon, so the text after the first `:` is ours.
  const [, named, role = 'other'] = /:r=(?:[a-z]+_\[(\w+)\]|([a-z]+))/.exec(urn) ?? [];
  const kind = named ?? role;
  return kind === 'indicator' ? 'inbound' : kind;
}
