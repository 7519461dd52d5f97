/**
 * HMAC (RFC 2104) of short texts under a key that stays. `createHmac` takes 2 µs each time, or 10 with a key of bytes, most of it for
 * creating its object and key. Two calls of `hash` take half of the smaller figure.
 */
import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';

/** Bytes of a block, and of a digest. */
const BLOCK = 64;
const SIZES = { sha1: 20, sha256: 32 } as const;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
/** Limit of bytes of a text for this method; longer texts use `createHmac`. */
const MAX_BYTES = 4096;
/** Maximum of UTF-8 bytes for a UTF-16 unit. */
const MAX_BYTES_PER_CHARACTER = 3;
const NUMBER_BYTES = 4;
const BYTE = 0x100;

/** Texts are hashed as UTF-8. Needs no closing. */
export class KeyedHash {
  readonly #algorithm: keyof typeof SIZES;
  readonly #key: KeyObject;
  readonly #size: number;
  /** The padded key, followed by room for the text. */
  readonly #inner = Buffer.alloc(BLOCK + MAX_BYTES);
  readonly #outer: Buffer;
  readonly #given: Buffer;
  readonly #expected: Buffer;

  /** `size`: bytes of the digest that form a signature, a multiple of 3; default: all. */
  constructor(algorithm: keyof typeof SIZES, key: string | Uint8Array, size: number = SIZES[algorithm]) {
    const bytes = typeof key === 'string' ? Buffer.from(key) : key;
    const padded = bytes.length > BLOCK ? hash(algorithm, bytes, 'buffer') : bytes;
    this.#algorithm = algorithm;
    this.#key = createSecretKey(bytes);
    this.#size = size;
    this.#outer = Buffer.alloc(BLOCK + SIZES[algorithm]);
    // One extra byte detects a signature that is too long.
    this.#given = Buffer.alloc(size + 1);
    this.#expected = Buffer.alloc(size + 1);
    for (let at = 0; at < BLOCK; at += 1) {
      this.#inner[at] = (padded[at] ?? 0) ^ INNER_PAD;
      this.#outer[at] = (padded[at] ?? 0) ^ OUTER_PAD;
    }
  }

  /** The signature of `text`, in base64url without padding. */
  sign(text: string): string {
    const whole = this.#digest(text, 'base64url');
    return this.#size === SIZES[this.#algorithm] ? whole : whole.slice(0, (this.#size * 4) / 3);
  }

  /**
   * Whether the base64url text `signature` is the signature of `text`. The comparison takes the same time for wrong and right signatures.
   */
  isSigned(text: string, signature: string): boolean {
    return this.isOf(this.digest(text), signature);
  }

  /** All bytes of the digest of `text`, one character each, for `isOf`. As secret as a signature. */
  digest(text: string): string {
    return this.#digest(text, 'binary');
  }

  /** As `isSigned`, for the text with this digest. */
  isOf(digest: string, signature: string): boolean {
    const size = this.#size;
    this.#expected.write(digest, 0, size, 'latin1');
    const length = this.#given.write(signature, 'base64url');
    this.#given[size] = 0;
    // The decoder ignores a last character that does not complete a byte, so the length of the text counts, too.
    return timingSafeEqual(this.#given, this.#expected) && length === size && signature.length <= Math.ceil(size / 3) * 4;
  }

  /** The first 32 bits of the digest of `text`. */
  number(text: string): number {
    const digest = this.#digest(text, 'binary');
    let number = 0;
    for (let at = 0; at < NUMBER_BYTES; at += 1) number = number * BYTE + digest.charCodeAt(at);
    return number;
  }

  #digest(text: string, encoding: 'base64url' | 'binary'): string {
    if (text.length * MAX_BYTES_PER_CHARACTER > MAX_BYTES) return createHmac(this.#algorithm, this.#key).update(text).digest(encoding);
    const end = BLOCK + this.#inner.write(text, BLOCK);
    this.#outer.write(hash(this.#algorithm, this.#inner.subarray(0, end), 'binary'), BLOCK, 'latin1');
    return hash(this.#algorithm, this.#outer, encoding);
  }
}
