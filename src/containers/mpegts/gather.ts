/** The payload of one PES packet as pieces of other buffers, so that media bytes are copied once: into TS packets. */

export class Gather {
  readonly #buffers: Uint8Array[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  #pieces = 0;
  #length = 0;

  /** Bytes of all pieces. */
  get length(): number {
    return this.#length;
  }

  /** Begins a new payload. */
  reset(): void {
    this.#buffers.length = 0; // lets go of the packets of the payload before
    this.#pieces = 0;
    this.#length = 0;
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

  /** Copies the whole payload to `target` at `at`. */
  copyTo(target: Uint8Array, at: number): void {
    let to = at;
    for (let piece = 0; piece < this.#pieces; piece += 1) {
      const start = this.#starts[piece] ?? 0;
      const end = this.#ends[piece] ?? 0;
      target.set(this.#buffers[piece]?.subarray(start, end) ?? [], to);
      to += end - start;
    }
  }
}
