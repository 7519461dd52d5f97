import type { ToThread } from '../thread-protocol.ts';

/** Messages for all delivery threads, in order and in one batch for each turn of the event loop, because waking a thread is expensive. */
export class ThreadOutbox {
  readonly #send: () => void;
  #batch: ToThread[] = [];
  #late: ToThread[] = [];
  #scheduled = false;

  /** `send` is called at the end of the turn, and takes the messages. */
  constructor(send: () => void) {
    this.#send = send;
  }

  post(message: ToThread): void {
    this.#batch.push(message);
    this.schedule();
  }

  /** Added after all other messages of its batch. */
  postLate(message: ToThread): void {
    this.#late.push(message);
    this.schedule();
  }

  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // After the sockets that are readable now: waking a thread costs as much as packaging several frames.
    setImmediate(this.#send);
  }

  /** Removes and returns the waiting messages. */
  take(): readonly ToThread[] {
    this.#scheduled = false;
    if (this.#batch.length === 0 && this.#late.length === 0) return [];
    const messages = [...this.#batch, ...this.#late];
    this.#batch = [];
    this.#late = [];
    return messages;
  }
}
