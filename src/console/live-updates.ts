/** When pages reload their data; each page requests its own. */

/** `figures` change all the time; `names` when something is added, removed or replaced. */
export type Topic = 'figures' | 'names';

/** Notifies followers that something may have changed. */
export interface LiveUpdates {
  /** Calls `listener` until the returned function is called. */
  follow(listener: () => void, topic?: Topic): () => void;
}

const EVERY_MS = 2000;
/** Interval of reloads while events report changes, in case one was missed. */
const RARELY_MS = 30_000;
/** Events within this time cause one reload. */
const GATHER_MS = 250;

/** A clock that stops while the page is hidden. While events arrive, names are reloaded on events instead of on its ticks. */
export class LiveClock implements LiveUpdates {
  readonly #listeners = new Map<() => void, Topic>();
  #timer = 0;
  #soon = 0;
  #namesAt = 0;
  /** Whether events arrive (`GET /v1/events`). */
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

  /** Something was added, removed or replaced. */
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
