/** The payload of one PES packet as pieces of other buffers, so that media bytes are copied once: into TS packets. */

export class Gather {
  readonly #buffers: Uint8Array[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  #pieces = 0;
  #length = 0;
  #piece = 0;
  #offset = 0;

  /** Bytes of all pieces. */
  get length(): number {
    return this.#length;
  }

  /** Starts a new payload. */
  reset(): void {
    this.#buffers.length = 0; // lets go of the packets of the payload before
    this.#pieces = 0;
    this.#length = 0;
    this.#piece = 0;
    this.#offset = 0;
  }

  /** Appends `buffer` from `start` to `end`, which must not change until the payload is written. */
  add(buffer: Uint8Array, start = 0, end = buffer.length): void {
    if (end <= start) return;
    this.#buffers[this.#pieces] = buffer;
    this.#starts[this.#pieces] = start;
    this.#ends[this.#pieces] = end;
    this.#pieces += 1;
    this.#length += end - start;
  }

  /** Copies the next `count` bytes, which must exist, to `target` at `at`. */
  copyTo(target: Uint8Array, at: number, count: number): void {
    let left = count;
    let to = at;
    while (left > 0) {
      const buffer = this.#buffers[this.#piece];
      if (buffer === undefined) throw new RangeError(`${left} bytes asked beyond the payload`);
      const from = (this.#starts[this.#piece] ?? 0) + this.#offset;
      const available = (this.#ends[this.#piece] ?? 0) - from;
      const take = Math.min(left, available);
      target.set(buffer.subarray(from, from + take), to);
      to += take;
      left -= take;
      this.#offset += take;
      if (take === available) {
        this.#piece += 1;
        this.#offset = 0;
      }
    }
  }
}
