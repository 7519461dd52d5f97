/**
 * gzip (RFC 1952) of texts that differ between viewers only in a repeated piece, the tail: compressed once for all viewers. The first tail
 * is in a stored block (RFC 1951 section 3.2.4), all other occurrences refer back to it, so a viewer's body is a copy with that block
 * replaced.
 *
 * gzip header | deflated text before the tail | stored block: tail | deflated rest | CRC-32 | length
 */
import { constants, crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import { shiftSum, timesModulo } from './crc-patch.ts';

/** Longer tails would need a byte twice in the placeholder. */
const MAX_TAIL = 128;
const GZIP_HEADER = Buffer.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff);
const STORED_HEADER = 5;
const TRAILER = 8;
/** Bytes outside ASCII represent the tail: they match each other and nothing else. */
const PLACEHOLDER_FIRST = 0x80;

/** Immutable: one instance serves all viewers whose tails have the same length. */
export class TailoredGzip {
  readonly #template: Buffer;
  readonly #tailStart: number;
  /** Checksum of the text with tails of zeros, checksum of such a tail, and the factor for the checksum of a tail. */
  readonly #zeroSum: number;
  readonly #zeroTailSum: number;
  readonly #shifts: number;

  private constructor(pieces: readonly string[], tailLength: number, template: Buffer, tailStart: number) {
    const zeros = '\0'.repeat(tailLength);
    this.#template = template;
    this.#tailStart = tailStart;
    this.#zeroSum = crc32(pieces.join(zeros));
    this.#zeroTailSum = crc32(zeros);
    this.#shifts = shiftSum(pieces, tailLength);
  }

  /** For `pieces` with tails of `tailLength` bytes between them; null if they cannot be compressed this way. */
  static make(pieces: readonly string[], tailLength: number): TailoredGzip | null {
    const [before = '', ...rest] = pieces;
    if (rest.length === 0 || tailLength === 0 || tailLength > MAX_TAIL || !pieces.every(isAscii)) return null;
    const placeholder = placeholderOf(tailLength, 0);
    const dictionary = Buffer.from(before + placeholder, 'latin1');
    const first = deflateRawSync(Buffer.from(before, 'latin1'), { finishFlush: constants.Z_SYNC_FLUSH });
    const last = deflateRawSync(Buffer.from(rest.join(placeholder), 'latin1'), { dictionary });
    const stored = Buffer.alloc(STORED_HEADER + tailLength);
    stored.writeUInt16LE(tailLength, 1);
    stored.writeUInt16LE(~tailLength & 0xffff, 3);
    const template = Buffer.concat([GZIP_HEADER, first, stored, last, Buffer.alloc(TRAILER)]);
    template.writeUInt32LE(before.length + tailLength + rest.join(placeholder).length, template.length - TRAILER + 4);
    const made = new TailoredGzip(pieces, tailLength, template, GZIP_HEADER.length + first.length + STORED_HEADER);
    return made.#isPatchable(pieces, tailLength) ? made : null;
  }

  /** Offset of the tail. */
  get places(): Uint32Array {
    return Uint32Array.of(this.#tailStart);
  }

  /** Checksum of the text with tails of zeros, checksum of such a tail, and the factor for the checksum of a tail. */
  get sums(): Uint32Array {
    return Uint32Array.of(this.#zeroSum, this.#zeroTailSum, this.#shifts);
  }

  /** The body for one viewer; `tail` is ASCII and has the given length. */
  body(tail: string): Buffer {
    const body = Buffer.allocUnsafe(this.#template.length);
    this.#template.copy(body);
    body.write(tail, this.#tailStart, 'latin1');
    const sum = this.#zeroSum ^ timesModulo(this.#shifts, crc32(tail) ^ this.#zeroTailSum);
    body.writeUInt32LE(sum >>> 0, body.length - TRAILER);
    return body;
  }

  /**
   * Whether every byte of every tail is a reference: the compressor may write a byte out. A probe that differs
   * from the placeholder in each byte, and whose bytes are all different, reveals that.
   */
  #isPatchable(pieces: readonly string[], tailLength: number): boolean {
    const probe = placeholderOf(tailLength, 1);
    const patched = Buffer.from(this.#template);
    patched.write(probe, this.#tailStart, 'latin1');
    return inflateRawSync(patched.subarray(GZIP_HEADER.length, -TRAILER)).toString('latin1') === pieces.join(probe);
  }
}

/** Different bytes outside ASCII, rotated by `shift`. */
function placeholderOf(length: number, shift: number): string {
  return Buffer.from(Array.from({ length }, (_unused, index) => PLACEHOLDER_FIRST + ((index + shift) % MAX_TAIL))).toString('latin1');
}

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}
