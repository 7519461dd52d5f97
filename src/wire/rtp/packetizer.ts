/** Turns frames into RTP payloads, once for all viewers of a stream. */

/** The payloads of one frame back to back. Views into the packetizer's memory, valid until its next frame. */
export interface Payloads {
  readonly bytes: Uint8Array;
  readonly sizes: Uint32Array;
}

/** One for each track: payloads are valid until its next frame. */
export interface Packetizer {
  /** Payloads of `frame`; none for a frame without useful content. Throws ProtocolError for a malformed frame. */
  packetize(frame: Uint8Array): Payloads;
}

const FIRST_BYTES = 4096;
const FIRST_PACKETS = 8;

/** Gathers payloads in memory that is kept from frame to frame. */
export class PayloadBuffer {
  #bytes = new Uint8Array(FIRST_BYTES);
  #sizes = new Uint32Array(FIRST_PACKETS);
  #length = 0;
  #count = 0;
  #start = 0;

  reset(): void {
    this.#length = 0;
    this.#count = 0;
    this.#start = 0;
  }

  /** Bytes of the payload being written. */
  get current(): number {
    return this.#length - this.#start;
  }

  u8(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length] = value;
    this.#length += 1;
  }

  u16(value: number): void {
    this.u8(value >> 8);
    this.u8(value & 0xff);
  }

  append(data: Uint8Array, start: number, end: number): void {
    this.#reserve(end - start);
    // For few bytes a loop costs less than a view.
    if (end - start < 16) for (let n = start; n < end; n += 1) this.#bytes[this.#length + n - start] = data[n] ?? 0;
    else this.#bytes.set(data.subarray(start, end), this.#length);
    this.#length += end - start;
  }

  /** Changes a byte of the payload being written. */
  patch(at: number, value: number): void {
    this.#bytes[this.#start + at] = value;
  }

  /** The payload is complete; an empty payload is discarded. */
  finish(): void {
    if (this.current === 0) return;
    if (this.#count === this.#sizes.length) {
      const larger = new Uint32Array(this.#count * 2);
      larger.set(this.#sizes);
      this.#sizes = larger;
    }
    this.#sizes[this.#count] = this.current;
    this.#count += 1;
    this.#start = this.#length;
  }

  take(): Payloads {
    return { bytes: this.#bytes.subarray(0, this.#length), sizes: this.#sizes.subarray(0, this.#count) };
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + count));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
