/** Writes ISO base media file format boxes (ISO/IEC 14496-12) into one growing buffer. */

const INITIAL_CAPACITY = 2048;
const UINT32 = 0x1_0000_0000;

/** A byte writer for boxes. An instance may be reused: `reset` keeps its memory. */
export class BoxWriter {
  #bytes = new Uint8Array(INITIAL_CAPACITY);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  /** Bytes written since the last reset. */
  get length(): number {
    return this.#length;
  }

  /** Discards the content; memory is kept. */
  reset(): void {
    this.#length = 0;
  }

  /** Opens a box of four-character `type`; the returned position must be passed to `end`. */
  box(type: string): number {
    const start = this.#length;
    this.u32(0);
    this.fourCc(type);
    return start;
  }

  /** Opens a full box (§4.2.2). */
  fullBox(type: string, version: number, flags: number): number {
    const start = this.box(type);
    this.u32(((version << 24) | flags) >>> 0);
    return start;
  }

  /** Closes the box that began at `start` and writes its size. */
  end(start: number): void {
    this.#view.setUint32(start, this.#length - start);
  }

  /** Overwrites four bytes written earlier. */
  patchU32(position: number, value: number): void {
    this.#view.setUint32(position, value);
  }

  u8(value: number): void {
    this.#reserve(1);
    this.#view.setUint8(this.#length, value);
    this.#length += 1;
  }

  u16(value: number): void {
    this.#reserve(2);
    this.#view.setUint16(this.#length, value);
    this.#length += 2;
  }

  u32(value: number): void {
    this.#reserve(4);
    this.#view.setUint32(this.#length, value);
    this.#length += 4;
  }

  i32(value: number): void {
    this.#reserve(4);
    this.#view.setInt32(this.#length, value);
    this.#length += 4;
  }

  /** Any safe integer ≥ 0 as 64 bits. */
  u64(value: number): void {
    this.u32(Math.floor(value / UINT32));
    this.u32(value % UINT32);
  }

  fourCc(type: string): void {
    this.ascii(type);
  }

  ascii(text: string): void {
    this.#reserve(text.length);
    for (let i = 0; i < text.length; i++) this.#bytes[this.#length + i] = text.charCodeAt(i);
    this.#length += text.length;
  }

  bytes(data: Uint8Array): void {
    this.#reserve(data.length);
    this.#bytes.set(data, this.#length);
    this.#length += data.length;
  }

  zeros(count: number): void {
    this.#reserve(count);
    this.#bytes.fill(0, this.#length, this.#length + count);
    this.#length += count;
  }

  /** The written bytes, valid until the next write or reset. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** A copy of the content. */
  copy(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    larger.set(this.view());
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}
