import { MediaMemory } from './media-memory.ts';

const BLOCK_SIZE = 128 * 1024;
/** Longer buffers get memory of their own. */
const MAX_SHARED_LENGTH = 32 * 1024;

/**
 * Cuts buffers out of larger blocks: creating and collecting a separate buffer costs microseconds, a view a tenth of that. A block is freed
 * when no buffer cut from it is left, so copy data that is kept for long.
 */
export class Slab {
  readonly #memory = new MediaMemory();
  #block: ArrayBufferLike = new ArrayBuffer(0);
  #used = 0;

  /** `length` bytes with unspecified content. */
  allocate(length: number): Buffer {
    if (length > MAX_SHARED_LENGTH) return this.#memory.allocate(length);
    if (this.#used + length > this.#block.byteLength) {
      this.#block = this.#memory.allocate(BLOCK_SIZE).buffer;
      this.#used = 0;
    }
    const buffer = Buffer.from(this.#block, this.#used, length);
    this.#used += length;
    return buffer;
  }
}
