/** gzip for playlists. Texts that several viewers get are compressed once, also when each has its own session in them. */
import { gzipSync } from 'node:zlib';
import { TailoredGzip } from './tailored-gzip.ts';

const CACHE_LIMIT = 256;
/** Lengths of tails known for one text. Sessions of one server differ little; what else is in a tail, the client chose. */
const TAIL_LENGTHS = 8;

/** Lines of a playlist resemble their neighbours: a window of 1 KiB compresses as well as 32, in less than half the time. */
const OPTIONS = { level: 1, windowBits: 10, memLevel: 4 };

export class TextCoder {
  readonly #cache = new Map<string, Buffer>();
  /** By text and length of the tail; null: cannot be compressed for all. */
  readonly #tailored = new WeakMap<readonly string[], Map<number, TailoredGzip | null>>();

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

  /** `pieces` with `tail` between them. The array is what is remembered: it must not change, and be the same for all viewers. */
  gzipTailored(pieces: readonly string[], tail: string): Buffer {
    return this.#tailoredFor(pieces, tail.length)?.body(tail) ?? this.gzip(pieces.join(tail), 'personal');
  }

  #tailoredFor(pieces: readonly string[], tailLength: number): TailoredGzip | null {
    let lengths = this.#tailored.get(pieces);
    if (lengths === undefined) {
      lengths = new Map();
      this.#tailored.set(pieces, lengths);
    }
    const known = lengths.get(tailLength);
    if (known !== undefined || lengths.size >= TAIL_LENGTHS) return known ?? null;
    const made = TailoredGzip.make(pieces, tailLength);
    lengths.set(tailLength, made);
    return made;
  }
}
