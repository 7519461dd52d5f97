/** Writes big-endian integers and byte strings into a buffer that grows. */

const INITIAL_CAPACITY = 256;

/** Keeps one buffer, doubled when it is full, which `reset` leaves for the next use. */
export class ByteWriter {
  #buffer: Uint8Array;
  #view: DataView;
  #length = 0;

  constructor(capacity = INITIAL_CAPACITY) {
    this.#buffer = new Uint8Array(capacity);
    this.#view = new DataView(this.#buffer.buffer);
  }

  /** Bytes written since the start or the last `reset`. */
  get length(): number {
    return this.#length;
  }

  u8(value: number): this {
    const at = this.#grow(1);
    this.#buffer[at] = value;
    return this;
  }

  u16(value: number): this {
    const at = this.#grow(2);
    this.#view.setUint16(at, value);
    return this;
  }

  u24(value: number): this {
    const at = this.#grow(3);
    this.#view.setUint8(at, value >>> 16);
    this.#view.setUint16(at + 1, value);
    return this;
  }

  u32(value: number): this {
    const at = this.#grow(4);
    this.#view.setUint32(at, value);
    return this;
  }

  i32(value: number): this {
    const at = this.#grow(4);
    this.#view.setInt32(at, value);
    return this;
  }

  /** A non-negative integer up to 2^53 - 1 in 8 bytes. */
  u64(value: number): this {
    const at = this.#grow(8);
    this.#view.setUint32(at, Math.floor(value / 2 ** 32));
    this.#view.setUint32(at + 4, value % 2 ** 32);
    return this;
  }

  bytes(data: Uint8Array): this {
    const at = this.#grow(data.length);
    this.#buffer.set(data, at);
    return this;
  }

  /** Text as UTF-8, without a terminator. */
  text(value: string): this {
    return this.bytes(new TextEncoder().encode(value));
  }

  zeros(count: number): this {
    const at = this.#grow(count);
    this.#buffer.fill(0, at, at + count);
    return this;
  }

  /** Overwrites the 32-bit number at `offset`, for example a size that is known only at the end. */
  patchU32(offset: number, value: number): void {
    if (offset < 0 || offset + 4 > this.#length) throw new RangeError(`patch at ${offset} is outside the ${this.#length} bytes written`);
    this.#view.setUint32(offset, value);
  }

  /** A view of the written bytes; valid until the next write or `reset`. */
  view(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  /** A copy of the written bytes. */
  finish(): Uint8Array {
    return this.#buffer.slice(0, this.#length);
  }

  /** Starts again in the same buffer. */
  reset(): this {
    this.#length = 0;
    return this;
  }

  #grow(count: number): number {
    const at = this.#length;
    const needed = at + count;
    if (needed > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(needed, this.#buffer.length * 2));
      larger.set(this.#buffer.subarray(0, at));
      this.#buffer = larger;
      this.#view = new DataView(larger.buffer);
    }
    this.#length = needed;
    return at;
  }
}
