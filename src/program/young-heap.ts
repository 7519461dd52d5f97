import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Both semi-spaces, bytes: V8 would let them grow to eight times that. */
const MAX_BYTES = 16 * 2 ** 20;

/**
 * Limits the young generation of the calling thread to 16 MB. Media lies outside of the heap and is freed when the small objects that refer
 * to it are collected. V8 counts media, and marks the whole heap each time that it has grown by 64 MB: with a large young generation most
 * of that is frames that are no longer needed. Checks the size after each collection, so it costs nothing without allocations.
 */
export class YoungHeap {
  readonly #observer: PerformanceObserver;
  #grows = true;

  constructor() {
    this.#observer = new PerformanceObserver(() => this.#look());
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  /** Idempotent. */
  close(): void {
    this.#observer.disconnect();
  }

  /** Present size of the young generation, bytes. */
  static size(): number {
    return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
  }

  #look(): void {
    // V8 shrinks the young generation of an idle process; then it may grow again.
    const grows = YoungHeap.size() < MAX_BYTES;
    if (grows === this.#grows) return;
    this.#grows = grows;
    setFlagsFromString(`--semi-space-growth-factor=${grows ? 2 : 1}`);
  }
}
