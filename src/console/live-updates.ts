/** When it is time to look again. What is on show asks for what it needs. */

/** `figures` change all the time; `names` when something comes, goes or is another. */
export type Topic = 'figures' | 'names';

/** Notifies followers that something may have changed. */
export interface LiveUpdates {
  /** Calls `listener` until the function returned is called. */
  follow(listener: () => void, topic?: Topic): () => void;
}

const EVERY_MS = 2000;
/** For what the server tells of, in case that something was missed. */
const RARELY_MS = 30_000;
/** What happens at once is looked at once. */
const GATHER_MS = 250;

/** A clock that stands still while nobody looks at the page. While the server tells of changes, names are looked at when it does. */
export class LiveClock implements LiveUpdates {
  readonly #listeners = new Map<() => void, Topic>();
  #timer = 0;
  #soon = 0;
  #namesAt = 0;
  /** The server tells what changes (`GET /v1/events`). */
  isTold = false;

  follow(listener: () => void, topic: Topic = 'figures'): () => void {
    this.#listeners.set(listener, topic);
    if (this.#timer === 0) this.#timer = setInterval(() => this.#tick(), EVERY_MS);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = 0;
    };
  }

  /** Something has come, gone or is another. */
  changed(): void {
    if (this.#soon !== 0) return;
    this.#soon = setTimeout(() => {
      this.#soon = 0;
      this.#call('names');
    }, GATHER_MS);
  }

  #tick(): void {
    if (document.hidden) return;
    this.#call('figures');
    if (!this.isTold || performance.now() - this.#namesAt >= RARELY_MS) this.#call('names');
  }

  #call(topic: Topic): void {
    if (topic === 'names') this.#namesAt = performance.now();
    for (const [listener, wanted] of this.#listeners) if (wanted === topic) listener();
  }
}
