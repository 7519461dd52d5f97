/** Bytes of playlists. Texts for several viewers are prepared and compressed once, even if each contains another session. */
import { gzipSync } from 'node:zlib';
import { loadAddon, type NativeAddon } from '../../native/addon.ts';
import { TailoredGzip } from './tailored-gzip.ts';
import { TailoredText } from './tailored-text.ts';

const MAX_CACHE = 256;
/** Known lengths of tails per text. Sessions of one server differ little in length, but clients choose the rest of a tail. */
const MAX_TAIL_LENGTHS = 8;
/**
 * Plain bodies share blocks of this size: an allocation for each costs more than filling it. A client that does not read keeps one block.
 */
const SLAB = 64 * 1024;
/** Header, checksum and length of gzip, and the heads of its blocks. */
const GZIP_FRAME = 64;
const NO_SUMS = new Uint32Array();

/** Without the addon. Lines of a playlist resemble the previous ones: a window of 1 KiB compresses as well as 32, in less than half the time. */
const OPTIONS = { level: 1, windowBits: 10, memLevel: 4 };

/** The compressed text for all viewers with tails of equal length. */
interface Tailored {
  /** Null: cannot be compressed for all. */
  gzip?: TailoredGzip | null;
  text?: TailoredText;
  /** A viewer has requested it compressed. */
  requested: boolean;
}

/** One per thread; its cache is bounded, or ends with the text. */
export class TextCoder {
  readonly #addon: NativeAddon | null;
  readonly #cache = new Map<string, Buffer>();
  /** By text and length of the tail. */
  readonly #tailored = new WeakMap<readonly string[], Map<number, Tailored>>();
  /** The current block for bodies, and its used part. */
  #slab = Buffer.alloc(0);
  #used = 0;

  constructor(addon: NativeAddon | null = loadAddon().addon) {
    this.#addon = addon;
  }

  /** `shared`: other viewers will request the same text. */
  gzip(text: string, shared: 'shared' | 'personal'): Buffer {
    if (shared === 'personal') return this.#compress(text);
    const known = this.#cache.get(text);
    if (known !== undefined) return known;
    const made = this.#compress(text);
    if (this.#cache.size >= MAX_CACHE) {
      const oldest = this.#cache.keys().next();
      if (!oldest.done) this.#cache.delete(oldest.value);
    }
    this.#cache.set(text, made);
    return made;
  }

  /**
   * `pieces` with `tail` between them. The array is the cache key: it must not change, and must be the same for all viewers. `isAwaited`: more
   * than one viewer waits for it. To compress a text for all costs several times as much as for one, so the first viewer does not cause that.
   */
  gzipTailored(pieces: readonly string[], tail: string, isAwaited = false): Buffer {
    const tailored = this.#tailoredFor(pieces, tail.length);
    if (tailored !== null) {
      if (tailored.gzip === undefined && (tailored.requested || isAwaited)) tailored.gzip = TailoredGzip.make(pieces, tail.length);
      tailored.requested = true;
    }
    return tailored?.gzip?.body(tail) ?? this.gzip(pieces.join(tail), tail === '' ? 'shared' : 'personal');
  }

  /** As `gzipTailored`, without compression. */
  textTailored(pieces: readonly string[], tail: string): Buffer {
    const tailored = this.#tailoredFor(pieces, tail.length);
    if (tailored === null) return Buffer.from(pieces.join(tail));
    tailored.text ??= new TailoredText(pieces, tail);
    const body = this.#take(tailored.text.length);
    tailored.text.write(tail, body);
    return body;
  }

  /** Offsets of `tail` in a body from `pieces`, and parts of its checksum; null: unknown. */
  layout(
    pieces: readonly string[],
    tail: string,
    coding: 'gzip' | 'identity',
  ): { readonly places: Uint32Array; readonly sums: Uint32Array } | null {
    const tailored = this.#tailored.get(pieces)?.get(tail.length);
    if (coding === 'identity') return tailored?.text === undefined ? null : { places: tailored.text.places, sums: NO_SUMS };
    const gzip = tailored?.gzip ?? null;
    return gzip === null ? null : { places: gzip.places, sums: gzip.sums };
  }

  #compress(text: string): Buffer {
    if (this.#addon === null || text.length + GZIP_FRAME > SLAB) return gzipSync(text, OPTIONS);
    // What compression does not need is taken back.
    const body = this.#take(text.length + GZIP_FRAME);
    const length = this.#addon.gzipText(text, body);
    this.#used -= body.length - length;
    return length === 0 ? gzipSync(text, OPTIONS) : body.subarray(0, length);
  }

  #take(length: number): Buffer {
    if (length > SLAB) return Buffer.allocUnsafeSlow(length);
    if (this.#used + length > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(SLAB);
      this.#used = 0;
    }
    this.#used += length;
    return this.#slab.subarray(this.#used - length, this.#used);
  }

  #tailoredFor(pieces: readonly string[], tailLength: number): Tailored | null {
    let lengths = this.#tailored.get(pieces);
    if (lengths === undefined) {
      lengths = new Map();
      this.#tailored.set(pieces, lengths);
    }
    const known = lengths.get(tailLength);
    if (known !== undefined) return known;
    if (lengths.size >= MAX_TAIL_LENGTHS) return null;
    const made: Tailored = { requested: false };
    lengths.set(tailLength, made);
    return made;
  }
}
