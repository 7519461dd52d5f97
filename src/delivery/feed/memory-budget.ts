/** Limits one feed's shared memory. */
import type { DeliveryFeed, Span } from './messages.ts';
import { spansLength } from './spans.ts';

/** Bytes: two minutes of 35 Mbit/s. Beyond it segments leave memory sooner than their number says. */
const MAX_FEED_BYTES = 512 * 1024 * 1024;

/**
 * Counts the bytes that the windows of one feed hold. Several tracks or variants share it: while it is exceeded, those that hold
 * at least an equal part of it have to give something back.
 */
export class MemoryBudget {
  readonly #feed: Pick<DeliveryFeed, 'store' | 'release'>;
  readonly #limit: number;
  #held = 0;

  /** `limit`: bytes. */
  constructor(feed: Pick<DeliveryFeed, 'store' | 'release'>, limit = MAX_FEED_BYTES) {
    this.#feed = feed;
    this.#limit = limit;
  }

  /** Bytes held now. */
  get held(): number {
    return this.#held;
  }

  /** See `DeliveryFeed.store`. */
  store(chunks: readonly Uint8Array[]): readonly Span[] {
    const spans = this.#feed.store(chunks);
    this.#held += spansLength(spans);
    return spans;
  }

  /** See `DeliveryFeed.release`. */
  release(spans: readonly Span[]): void {
    this.#feed.release(spans);
    this.#held -= spansLength(spans);
  }

  /** Whether a window that holds `spans` has to give some back; `windows` share the feed. */
  asksBack(windows: number, spans: () => readonly Span[]): boolean {
    return this.#held > this.#limit && spansLength(spans()) * windows >= this.#held;
  }
}
