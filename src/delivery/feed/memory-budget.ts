/** Limits one feed's shared memory. */
import type { DeliveryFeed, Span } from './messages.ts';
import { spansLength } from './spans.ts';

/** Bytes: two minutes at 35 Mbit/s. Above this limit, segments leave memory before their count requires it. */
const MAX_FEED_BYTES = 512 * 1024 * 1024;

/**
 * Counts the bytes in the windows of one feed. Tracks or variants share the budget: while it is exceeded, windows with at least an equal
 * share must release segments.
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

  /** Bytes currently stored. */
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

  /** Whether a window with `spans` must release some; `windows`: number of windows of the feed. */
  asksBack(windows: number, spans: () => readonly Span[]): boolean {
    return this.#held > this.#limit && spansLength(spans()) * windows >= this.#held;
  }
}
