/** Writes bit fields, most significant bit first. */

/** A growing buffer of bits; meant for small headers, not for media. */
export class BitWriter {
  readonly #bytes: number[] = [];
  #used = 8;

  /** Appends the lowest `count` (0 to 32) bits of `value`. */
  bits(value: number, count: number): this {
    for (let bit = count - 1; bit >= 0; bit--) {
      if (this.#used === 8) {
        this.#bytes.push(0);
        this.#used = 0;
      }
      const last = this.#bytes.length - 1;
      const one = Math.floor(value / 2 ** bit) & 1;
      this.#bytes[last] = (this.#bytes[last] ?? 0) | (one << (7 - this.#used));
      this.#used += 1;
    }
    return this;
  }

  flag(value: boolean): this {
    return this.bits(Number(value), 1);
  }

  /** Unsigned Exp-Golomb code, ISO/IEC 14496-10 §9.1. */
  ue(value: number): this {
    const length = Math.floor(Math.log2(value + 1));
    return this.bits(0, length).bits(value + 1, length + 1);
  }

  /** Pads with zero bits to the next byte boundary. */
  align(): this {
    this.#used = 8;
    return this;
  }

  /** The written bits, the last byte padded with zeros. */
  finish(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }
}
