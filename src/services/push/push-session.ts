/** One connection of a task, with its queue. */
import type { Packet } from '../../media/packet.ts';
import type { BoundedQueue } from '../../util/bounded-queue.ts';
import { guarded } from '../../util/guarded.ts';
import type { Destination, DestinationOptions, OpenDestination } from './destination.ts';
import { PushFailure } from './push-failure.ts';
import { SendQueue } from './send-queue.ts';

/** Dependencies of each connection. The queue is the task's and has its limit. */
export interface PushSessionOptions extends Omit<DestinationOptions, 'events'> {
  readonly open: OpenDestination;
  readonly queue: BoundedQueue<Packet>;
  /** Media is being sent from now on. Called once. */
  readonly onOpen: () => void;
  /** The connection is gone. Called once, unless the session was closed before. */
  readonly onFailed: (failure: PushFailure) => void;
}

/** Made for each attempt by the task, which closes it. A failure is reported once, and never thrown after the constructor. */
export class PushSession {
  readonly #options: PushSessionOptions;
  readonly #queue: SendQueue;
  readonly #destination: Destination;
  #open = false;
  #room = true;
  #over = false;

  /** Begins to connect. Throws `PushFailure` for a request that can never work. */
  constructor(options: PushSessionOptions) {
    this.#options = options;
    this.#queue = new SendQueue(options.queue, options.tracks);
    const { open, request, owner, logger, tracks, timeouts, clock } = options;
    this.#destination = open({
      ...{ request, owner, logger, tracks, timeouts, clock },
      events: {
        onOpen: () => {
          this.#open = true;
          this.#guarded(() => options.onOpen());
          this.flush();
        },
        onWritable: () => {
          this.#room = true;
          this.flush();
        },
        onFailed: (failure) => this.#fail(failure),
      },
    });
  }

  get sentBytes(): number {
    return this.#destination.sentBytes;
  }

  /** Packets, or datagrams, lost because the receiver did not keep up. */
  get dropped(): number {
    return this.#queue.dropped + this.#destination.dropped;
  }

  /** Takes a packet of a selected track; it leaves with `flush`. */
  push(packet: Packet): void {
    if (!this.#over) this.#queue.push(packet);
  }

  /** Sends waiting packets, as far as the receiver accepts them. */
  flush(): void {
    if (!this.#open || this.#over) return;
    this.#guarded(() => {
      while (this.#room) {
        const packet = this.#queue.shift();
        if (packet === undefined) break;
        this.#room = this.#destination.write(packet);
      }
      this.#destination.flush();
    });
  }

  /** Sends the rest and ends the connection in order; resolves when it is closed. Idempotent. */
  close(): Promise<void> {
    const wasOver = this.#over;
    // Set first: an error while the rest leaves must not look like a lost receiver and cause a reconnection.
    this.#over = true;
    if (!wasOver && this.#open) {
      this.#guarded(() => {
        for (let packet = this.#queue.shift(); packet !== undefined; packet = this.#queue.shift()) this.#destination.write(packet);
        this.#destination.flush();
      });
    }
    return this.#destination.close();
  }

  /** A fault of one receiver does not affect the others. */
  #guarded(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#fail(error instanceof PushFailure ? error : new PushFailure('internal', 'internal error', { cause: error }));
    }
  }

  #fail(failure: PushFailure): void {
    if (this.#over) return;
    this.#over = true;
    const { logger, onFailed } = this.#options;
    guarded(logger, 'the end of a push', () => this.#destination.close())();
    guarded(logger, 'a failed push', () => onFailed(failure))();
  }
}
