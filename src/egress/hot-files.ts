/** Media that several viewers ask for, once more in memory files: from there the system sends without copying. */
import { loadAddon, type NativeAddon } from '../protocols/fanout/addon.ts';
import type { Image } from '../protocols/http/direct-sender.ts';
import type { Span } from '../publishers/outlet/messages.ts';

/** For fewer bytes, copying them costs less. */
const SMALLEST = 32 * 1024;
/** Sweeps that a file nobody asks for is kept: two seconds. */
const PATIENCE = 4;

interface HotFile {
  image: Image | null;
  /** Sweeps since it was asked for. */
  age: number;
}

/**
 * A file gets an image the second time it is asked for: who is alone with a stream costs nothing more. When the images have grown too
 * large together, the oldest goes; its bytes are copied again, as before.
 */
export class HotFiles {
  readonly #addon: NativeAddon | null;
  readonly #limit: number;
  /** By the list that names their bytes, which is the same for all who ask. */
  readonly #files = new Map<readonly Span[], HotFile>();
  #bytes = 0;

  /** `limit`: bytes of all images. */
  constructor(limit: number, addon: NativeAddon | null = loadAddon().addon) {
    this.#limit = limit;
    this.#addon = addon;
  }

  /** Bytes in images now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The image of the file at `spans`, whose `size` bytes are `chunks`; null while it is worth none. */
  image(spans: readonly Span[], chunks: readonly Uint8Array[], size: number): Image | null {
    if (this.#addon === null || size < SMALLEST || size > this.#limit) return null;
    const file = this.#files.get(spans);
    if (file === undefined) {
      this.#files.set(spans, { image: null, age: 0 });
      return null;
    }
    file.age = 0;
    file.image ??= this.#open(this.#addon, chunks, size);
    return file.image;
  }

  /** To be called regularly: lets go of what nobody asks for any more. */
  sweep(): void {
    for (const [spans, file] of this.#files) {
      file.age += 1;
      if (file.age > PATIENCE) this.#close(spans, file);
    }
  }

  /** Idempotent. */
  close(): void {
    for (const [spans, file] of this.#files) this.#close(spans, file);
  }

  #open(addon: NativeAddon, chunks: readonly Uint8Array[], size: number): Image | null {
    for (const [spans, file] of this.#files) {
      if (this.#bytes + size <= this.#limit) break;
      if (file.image !== null) this.#close(spans, file);
    }
    const handle = addon.imageOpen(chunks);
    if (handle === null) return null;
    this.#bytes += size;
    return { handle, length: size };
  }

  #close(spans: readonly Span[], file: HotFile): void {
    this.#files.delete(spans);
    if (file.image === null) return;
    this.#bytes -= file.image.length;
    this.#addon?.imageClose(file.image.handle);
  }
}
