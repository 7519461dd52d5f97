/** Gathers the NAL units of one frame behind 4-byte lengths. */
import { ProtocolError } from '../../util/protocol-error.ts';

const LENGTH_SIZE = 4;
const FIRST_CAPACITY = 16_384;
const MAX_BYTES = 8_388_608;

/** One buffer that is reused for every frame; `take` copies out of it. Throws `RTP_UNIT` beyond 8 MiB. */
export class AccessUnitBuilder {
  #bytes = new Uint8Array(FIRST_CAPACITY);
  #length = 0;
  /** Start of the unfinished unit; -1 if there is none. */
  #unitAt = -1;

  get empty(): boolean {
    return this.#length === 0;
  }

  /** A unit has been begun and not ended. */
  get inside(): boolean {
    return this.#unitAt >= 0;
  }

  /** Adds a whole NAL unit; an empty unit is left out. */
  add(unit: Uint8Array): void {
    if (unit.length === 0) return;
    this.begin();
    this.append(unit);
    this.end();
  }

  begin(): void {
    this.#reserve(LENGTH_SIZE);
    this.#unitAt = this.#length;
    this.#length += LENGTH_SIZE;
  }

  appendByte(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#length] = byte;
    this.#length += 1;
  }

  append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  end(): void {
    const length = this.#length - this.#unitAt - LENGTH_SIZE;
    new DataView(this.#bytes.buffer).setUint32(this.#unitAt, length);
    this.#unitAt = -1;
  }

  /** The frame, in a buffer of its own; the builder is empty then. */
  take(): Uint8Array {
    const unit = this.#bytes.slice(0, this.#length);
    this.clear();
    return unit;
  }

  clear(): void {
    this.#length = 0;
    this.#unitAt = -1;
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    if (needed > MAX_BYTES) {
      this.clear();
      throw new ProtocolError('RTP_UNIT', `frame of more than ${MAX_BYTES} bytes`);
    }
    const larger = new Uint8Array(Math.min(MAX_BYTES, Math.max(needed, this.#bytes.length * 2)));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
