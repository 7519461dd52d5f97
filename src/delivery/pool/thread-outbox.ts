import type { ToThread } from '../thread-protocol.ts';

/** Messages for all delivery threads: in order, in one bundle for each turn of the event loop, since waking a thread is dear. */
export class ThreadOutbox {
  readonly #send: () => void;
  #batch: ToThread[] = [];
  #late: ToThread[] = [];
  #scheduled = false;

  /** `send` is called behind the turn, and takes what is there. */
  constructor(send: () => void) {
    this.#send = send;
  }

  post(message: ToThread): void {
    this.#batch.push(message);
    this.schedule();
  }

  /** Goes behind everything else of its bundle. */
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
