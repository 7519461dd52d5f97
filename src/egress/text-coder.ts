/** gzip for playlists. Texts that several viewers get are compressed once. */
import { gzipSync } from 'node:zlib';

const CACHE_LIMIT = 256;

/** Lines of a playlist resemble their neighbours: a window of 1 KiB compresses as well as 32, in less than half the time. */
const OPTIONS = { level: 1, windowBits: 10, memLevel: 4 };

export class TextCoder {
  readonly #cache = new Map<string, Buffer>();

  /** `shared`: other viewers will ask for the same text. */
  gzip(text: string, shared: 'shared' | 'personal'): Buffer {
    if (shared === 'personal') return gzipSync(text, OPTIONS);
    const known = this.#cache.get(text);
    if (known !== undefined) return known;
    const made = gzipSync(text, OPTIONS);
    if (this.#cache.size >= CACHE_LIMIT) {
      const oldest = this.#cache.keys().next();
      if (!oldest.done) this.#cache.delete(oldest.value);
    }
    this.#cache.set(text, made);
    return made;
  }
}
