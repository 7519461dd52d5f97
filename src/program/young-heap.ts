import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Both halves, bytes: V8 would let them grow to eight times that. */
const MAX_BYTES = 16 * 2 ** 20;

/**
 * Keeps the space of new objects of the calling thread from growing beyond 16 MB. Media lies outside of the heap and is freed when the small objects
 * that refer to it are collected. V8 counts it, and marks the whole heap each time that it has grown by 64 MB: with a large space for new objects
 * most of these are frames that nobody needs any more. Looks after each collection, and so never where nothing is allocated.
 */
export class YoungHeap {
  readonly #observer: PerformanceObserver;
  #grows = true;

  constructor() {
    this.#observer = new PerformanceObserver(() => this.#look());
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  /** May be called twice. */
  close(): void {
    this.#observer.disconnect();
  }

  /** Bytes that the space for new objects takes now. */
  static size(): number {
    return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
  }

  #look(): void {
    // V8 takes memory back from a process that rests; then it may grow again.
    const grows = YoungHeap.size() < MAX_BYTES;
    if (grows === this.#grows) return;
    this.#grows = grows;
    setFlagsFromString(`--semi-space-growth-factor=${grows ? 2 : 1}`);
  }
}
