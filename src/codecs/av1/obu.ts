/** Walks over the open bitstream units of an AV1 temporal unit, AV1 bitstream specification §5.3. */
import { ProtocolError } from '../../util/protocol-error.ts';

/** `obu_type`, AV1 bitstream specification §6.2.2. The missing numbers are reserved. */
export const ObuType = {
  SEQUENCE_HEADER: 1,
  TEMPORAL_DELIMITER: 2,
  FRAME_HEADER: 3,
  TILE_GROUP: 4,
  METADATA: 5,
  FRAME: 6,
  REDUNDANT_FRAME_HEADER: 7,
  TILE_LIST: 8,
  PADDING: 15,
} as const;
/** Any value of `ObuType`. */
export type ObuType = (typeof ObuType)[keyof typeof ObuType];

/** A length in LEB128 has at most 8 bytes (§4.10.5) and no OBU is larger than 2^32 - 1. */
const MAX_LEB128_BYTES = 8;
const MAX_OBU_SIZE = 2 ** 32 - 1;

/** `next()` moves to the next OBU: `start` is its header, `payload` to `end` its content. */
export class ObuCursor {
  readonly data: Uint8Array;
  #type = 0;
  #start = 0;
  #payload = 0;
  #end = 0;

  constructor(data: Uint8Array) {
    this.data = data;
  }

  get type(): number {
    return this.#type;
  }

  get start(): number {
    return this.#start;
  }

  get payload(): number {
    return this.#payload;
  }

  get end(): number {
    return this.#end;
  }

  /** False after the last unit. Throws `AV1_OBU` for a broken header or a size beyond the data. */
  next(): boolean {
    const at = this.#end;
    if (at >= this.data.length) return false;
    const header = this.data[at] ?? 0;
    if ((header & 0x80) !== 0) throw new ProtocolError('AV1_OBU', 'the forbidden bit of an OBU header is set', at);
    this.#type = (header >> 3) & 0xf;
    this.#start = at;
    const sizeAt = at + ((header & 0x04) === 0 ? 1 : 2);
    if ((header & 0x02) === 0) {
      if (sizeAt > this.data.length) throw new ProtocolError('AV1_OBU', 'OBU header ends early', at);
      this.#payload = sizeAt;
      this.#end = this.data.length;
    } else {
      this.#readSize(sizeAt);
    }
    return true;
  }

  /** A view of the whole unit, header included. */
  unit(): Uint8Array {
    return this.data.subarray(this.#start, this.#end);
  }

  #readSize(at: number): void {
    let size = 0;
    for (let i = 0; i < MAX_LEB128_BYTES; i++) {
      const byte = this.data[at + i];
      if (byte === undefined) throw new ProtocolError('AV1_OBU', 'OBU size ends early', at);
      size += (byte & 0x7f) * 2 ** (7 * i);
      if ((byte & 0x80) !== 0) continue;
      this.#payload = at + i + 1;
      if (size > MAX_OBU_SIZE || size > this.data.length - this.#payload) {
        throw new ProtocolError('AV1_OBU', `OBU of ${size} bytes, ${this.data.length - this.#payload} left`, at);
      }
      this.#end = this.#payload + size;
      return;
    }
    throw new ProtocolError('AV1_OBU', `OBU size longer than ${MAX_LEB128_BYTES} bytes`, at);
  }
}
