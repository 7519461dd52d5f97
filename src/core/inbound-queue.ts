import type { BoundedQueue } from '../util/bounded-queue.ts';
import type { SourceEvent, SourcePacket } from './ingest.ts';
import type { QueueRegistry } from './queue-registry.ts';

/** One item of a source: a packet or a change of tracks. */
export type SourceItem = SourcePacket | SourceEvent;

/** Packets that may wait between a provider and the router. */
const MAX_WAITING = 1000;
/** Numbers of waiting packets at which the provider is asked to stop reading, and to continue. */
const CONGESTED_FROM = 512;
const RELIEVED_AT = 128;
/** Packets processed in one turn of the event loop, so that one stream does not delay the others. */
const MAX_PACKETS_PER_TURN = 256;

/** Dependencies of a queue; all items belong to one stream. */
export interface InboundQueueOptions {
  readonly queues: QueueRegistry;
  readonly urn: string;
  readonly onItem: (item: SourceItem) => void;
  /** All packets of a turn have been processed. */
  readonly onDrained: () => void;
  /** A call in a turn threw. */
  readonly onFault: (error: unknown) => void;
  /** The present source: it is asked to stop reading, and to continue. */
  readonly source: () => { readonly onCongested?: () => void; readonly onRelieved?: () => void };
}

/** Between a provider and the router: worked off in turns of the event loop, so that nothing is dropped. Its maker closes it. */
export class InboundQueue {
  readonly #options: InboundQueueOptions;
  readonly #queue: BoundedQueue<SourceItem>;
  #scheduled = false;
  #congested = false;
  #closed = false;

  constructor(options: InboundQueueOptions) {
    this.#options = options;
    this.#queue = options.queues.create({ urn: options.urn, type: 'SourcePacket', threshold: MAX_WAITING });
  }

  /** Appends an item that arrived at `now` (monotonic, ms). */
  push(item: SourceItem, now: number): void {
    // Losing a packet would spoil frames up to the next keyframe, so packets that arrive before the provider stops are processed at once.
    if (this.#queue.full) this.work(MAX_PACKETS_PER_TURN);
    if (this.#closed) return;
    this.#queue.push(item, now);
    if (!this.#congested && this.#queue.size >= CONGESTED_FROM) {
      this.#congested = true;
      this.#options.source().onCongested?.();
    }
    if (!this.#scheduled) {
      this.#scheduled = true;
      // The turn begins after everything from the same read is in the queue.
      queueMicrotask(this.#turn);
    }
  }

  /** Processes at most `limit` waiting packets. Passes on exceptions of the receivers. */
  work(limit = Number.POSITIVE_INFINITY): void {
    for (let count = 1; count <= limit; count += 1) {
      const item = this.#queue.shift();
      if (item === undefined) break;
      this.#options.onItem(item);
    }
    this.#options.onDrained();
    if (this.#congested && this.#queue.size <= RELIEVED_AT) {
      this.#congested = false;
      this.#options.source().onRelieved?.();
    }
  }

  /** The source has changed: the new source has not been asked to stop. */
  forgetCongestion(): void {
    this.#congested = false;
  }

  /** Takes nothing more, and starts no further turn. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#options.queues.remove(this.#queue);
  }

  readonly #turn = (): void => {
    this.#scheduled = false;
    if (this.#closed) return;
    try {
      this.work(MAX_PACKETS_PER_TURN);
    } catch (error) {
      this.#options.onFault(error);
      return;
    }
    if (this.#queue.size > 0) {
      this.#scheduled = true;
      setImmediate(this.#turn);
    }
  };
}
