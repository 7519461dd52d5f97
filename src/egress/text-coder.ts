/** gzip for playlists. Texts that several viewers get are compressed once. */
import { constants, gzipSync } from 'node:zlib';

const CACHE_LIMIT = 256;

/** Playlists are small and repetitive: a small window compresses them as well as a large one. */
const OPTIONS = { level: 1, windowBits: 13, memLevel: 6, strategy: constants.Z_DEFAULT_STRATEGY };

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
