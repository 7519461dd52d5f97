import type { FileBytes } from './file-bytes.ts';

/** Read at once: a second or two of most films, a system call instead of some hundred. */
const WINDOW_BYTES = 262_144;
/** Places of a file that are read at the same time: audio and video may lie far apart. */
const WINDOWS = 2;

interface Window {
  readonly from: number;
  readonly bytes: Uint8Array;
}

/**
 * Reads ahead in large pieces, for those who read small ones one behind the other. What it hands out shares memory with its piece, which
 * nobody may write to. Needs no closing.
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
    const bytes = await this.#bytes.read(offset, Math.min(WINDOW_BYTES, this.size - offset));
    if (this.#windows.length >= WINDOWS) this.#windows.shift();
    this.#windows.push({ from: offset, bytes });
    return bytes.subarray(0, length);
  }

  #find(offset: number, length: number): Uint8Array | undefined {
    const index = this.#windows.findIndex(({ from, bytes }) => offset >= from && offset + length <= from + bytes.length);
    const window = this.#windows[index];
    if (window === undefined) return undefined;
    if (index !== this.#windows.length - 1) {
      this.#windows.splice(index, 1);
      this.#windows.push(window);
    }
    return window.bytes.subarray(offset - window.from, offset - window.from + length);
  }
}
