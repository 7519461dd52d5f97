/** A buffer of transport stream packets that is filled, read and reused. */

/** Bytes of a packet, header included (ISO/IEC 13818-1 §2.4.3.2). */
export const TS_PACKET_LENGTH = 188;
/** The first byte of a packet. */
export const TS_SYNC = 0x47;

const INITIAL_PACKETS = 16;

/** A growing run of whole transport stream packets. */
export class TsBuffer {
  #bytes: Uint8Array;
  #length = 0;

  constructor(packets = INITIAL_PACKETS) {
    this.#bytes = new Uint8Array(packets * TS_PACKET_LENGTH);
  }

  /** The buffer itself; `reserve` may replace it. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** Bytes written: a multiple of 188. */
  get length(): number {
    return this.#length;
  }

  /** Makes room for `packets` further packets. */
  reserve(packets: number): void {
    const needed = this.#length + packets * TS_PACKET_LENGTH;
    if (needed <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }

  /** Allocates the next packet and returns where it begins; `reserve` must have made room. */
  claim(): number {
    const at = this.#length;
    this.#length += TS_PACKET_LENGTH;
    return at;
  }

  /** The written bytes; valid until the next `reserve` or `reset`. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Discards the content and keeps the memory. */
  reset(): void {
    this.#length = 0;
  }
}
