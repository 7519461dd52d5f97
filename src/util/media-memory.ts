/** V8 marks its whole heap when the memory that it counts outside has grown by this, bytes. */
const V8_STEP = 64 * 2 ** 20;
/** Garbage may be this share of the memory of the process, or `V8_STEP` if that is more. */
const GARBAGE_SHARE = 0.15;
/** The memory of the process is looked up each time that this much was allocated, bytes. */
const LOOK_EVERY = 8 * 2 ** 20;

/**
 * Memory outside of V8's heap for media that the garbage collector frees. V8 counts the bytes of array buffers, and marks its whole heap
 * for each 64 MB more: with hundreds of streams more than once a second. V8 does not count shared array buffers, so a large process gets
 * these for a part of its media.
 */
export class MediaMemory {
  readonly #residentBytes: () => number;
  /** Share of the allocated bytes that V8 counts. */
  #countedShare = 1;
  /** Bytes that V8 should have counted and has not. */
  #uncounted = 0;
  #sinceLook = 0;

  /** `residentBytes` gives the resident memory of the process. */
  constructor(residentBytes: () => number = process.memoryUsage.rss) {
    this.#residentBytes = residentBytes;
  }

  /** A buffer with memory of its own and unspecified content. */
  allocate(length: number): Buffer {
    this.#sinceLook += length;
    if (this.#sinceLook >= LOOK_EVERY) this.#look();
    this.#uncounted += length * this.#countedShare;
    if (this.#uncounted < length) return Buffer.from(new SharedArrayBuffer(length));
    this.#uncounted -= length;
    return Buffer.allocUnsafeSlow(length);
  }

  #look(): void {
    this.#sinceLook = 0;
    this.#countedShare = Math.min(1, V8_STEP / (GARBAGE_SHARE * this.#residentBytes()));
  }
}
