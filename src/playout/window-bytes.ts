import type { FileBytes } from './file-bytes.ts';

/** Read at once: a second or two of most films, a system call instead of some hundred. */
const WINDOW_BYTES = 262_144;
/** For a new place: keeping one frame keeps all bytes of its read. */
const FIRST_BYTES = 16_384;
/** Places of a file that are read at the same time: its tracks may lie far apart. */
const MAX_WINDOWS = 4;
/** A read that begins this soon after a piece continues it. */
const NEAR_BYTES = 65_536;
/** A piece of which at least this share was used is followed by a piece of twice its size. */
const WANTED_SHARE = 1 / 4;

interface Window {
  readonly from: number;
  readonly bytes: Uint8Array;
  /** Bytes that were handed out. */
  used: number;
}

/**
 * Reads ahead for readers of small consecutive pieces, the further the more of its reads are used. Its results share the memory of a read,
 * which must not be written to. Needs no closing.
 */
export class WindowBytes implements FileBytes {
  readonly #bytes: FileBytes;
  /** The one used last is the last one. */
  readonly #windows: Window[] = [];

  constructor(bytes: FileBytes) {
    this.#bytes = bytes;
  }

  get size(): number {
    return this.#bytes.size;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const known = this.#find(offset, length);
    if (known !== undefined) return known;
    if (length >= WINDOW_BYTES || offset + length > this.size) return await this.#bytes.read(offset, length);
    const before = this.#windows.findLast(({ from, bytes }) => offset > from && offset <= from + bytes.length + NEAR_BYTES);
    const grown = before !== undefined && before.used >= before.bytes.length * WANTED_SHARE ? 2 * before.bytes.length : 0;
    const wanted = Math.min(WINDOW_BYTES, Math.max(FIRST_BYTES, length, grown), this.size - offset);
    const bytes = await this.#bytes.read(offset, wanted);
    this.#keep({ from: offset, bytes, used: length }, before);
    return bytes.subarray(0, length);
  }

  /** A place has one piece: the previous piece is no longer read. */
  #keep(window: Window, before: Window | undefined): void {
    const index = before === undefined ? -1 : this.#windows.indexOf(before);
    if (index >= 0) this.#windows.splice(index, 1);
    else if (this.#windows.length >= MAX_WINDOWS) this.#windows.shift();
    this.#windows.push(window);
  }

  #find(offset: number, length: number): Uint8Array | undefined {
    const index = this.#windows.findIndex(({ from, bytes }) => offset >= from && offset + length <= from + bytes.length);
    const window = this.#windows[index];
    if (window === undefined) return undefined;
    if (index !== this.#windows.length - 1) {
      this.#windows.splice(index, 1);
      this.#windows.push(window);
    }
    window.used += length;
    return window.bytes.subarray(offset - window.from, offset - window.from + length);
  }
}
