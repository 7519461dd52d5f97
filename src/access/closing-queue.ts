/** Queue of ended sessions to report to a control server. Only a stop waits for the answers, for a short time. */
import type { ControlServerFault } from '../util/control-server-client.ts';

/** Limit of waiting messages; further messages are dropped and counted. */
const MAX_WAITING = 10_000;

/** `send` gets each message and settles within a deadline of its own; `onFault` gets its rejections. */
export interface ClosingQueueOptions {
  readonly send: (message: object) => Promise<unknown>;
  readonly onFault: (fault: ControlServerFault | null) => void;
  readonly onIdle: () => void;
  /** Limit of messages that are sent at once. */
  readonly maxInFlight: number;
  readonly maxWaiting?: number;
}

/** Sends messages in the order in which sessions ended. */
export class ClosingQueue {
  /** Messages that were answered. */
  delivered = 0;
  /** Messages that were not answered in time, or dropped for lack of room. */
  lost = 0;
  readonly #options: ClosingQueueOptions;
  #waiting: object[] = [];
  #inFlight = 0;

  constructor(options: ClosingQueueOptions) {
    this.#options = options;
  }

  /** Messages neither answered nor given up. */
  get pending(): number {
    return this.#waiting.length + this.#inFlight;
  }

  push(message: object): void {
    if (this.#waiting.length >= (this.#options.maxWaiting ?? MAX_WAITING)) {
      this.lost += 1;
      this.#options.onFault(null);
      return;
    }
    this.#waiting.push(message);
    this.#work();
  }

  /** Discards the waiting messages. */
  clear(): void {
    this.lost += this.#waiting.length;
    this.#waiting = [];
  }

  #work(): void {
    while (this.#inFlight < this.#options.maxInFlight) {
      const message = this.#waiting.shift();
      if (message === undefined) return;
      this.#inFlight += 1;
      this.#options
        .send(message)
        .then(
          () => {
            this.delivered += 1;
          },
          (fault: ControlServerFault) => {
            this.lost += 1;
            this.#options.onFault(fault);
          },
        )
        .finally(() => this.#settled());
    }
  }

  #settled(): void {
    this.#inFlight -= 1;
    this.#work();
    if (this.pending === 0) this.#options.onIdle();
  }
}
