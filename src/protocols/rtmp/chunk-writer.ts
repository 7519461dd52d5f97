/** Cuts messages into chunks (RTMP 1.0 §5.3); the counterpart of the chunk reader. */
import { DEFAULT_CHUNK_SIZE, MAX_MESSAGE_LENGTH, type RtmpMessage } from './message.ts';

const EXTENDED_TIMESTAMP = 0xff_ffff;
const FIRST_ID_OF_TWO_BYTES = 64;
const FIRST_ID_OF_THREE_BYTES = 320;
const LAST_ID = 65_599;

interface WrittenHeader {
  timestamp: number;
  /** Null after a full header: readers disagree on what a type 3 header then repeats. */
  delta: number | null;
  length: number;
  typeId: number;
  streamId: number;
}

/** Serialises messages with the shortest headers the previous ones allow. */
export class ChunkWriter {
  readonly #last = new Map<number, WrittenHeader>();
  #chunkSize = DEFAULT_CHUNK_SIZE;

  get chunkSize(): number {
    return this.#chunkSize;
  }

  /** Takes effect with the next message: the caller has sent SetChunkSize before. */
  setChunkSize(size: number): void {
    if (!Number.isInteger(size) || size < 1 || size > MAX_MESSAGE_LENGTH) throw new TypeError(`chunk size out of range: ${size}`);
    this.#chunkSize = size;
  }

  /** All chunks of one message in one buffer. */
  write(message: RtmpMessage): Buffer {
    const { chunkStreamId, payload } = message;
    if (chunkStreamId < 2 || chunkStreamId > LAST_ID) throw new TypeError(`chunk stream id out of range: ${chunkStreamId}`);
    if (payload.length > MAX_MESSAGE_LENGTH) throw new TypeError(`message of ${payload.length} bytes is too long`);
    const timestamp = message.timestamp >>> 0;
    const last = this.#last.get(chunkStreamId);
    const fmt = chooseFormat(message, timestamp, last);
    const field = fmt === 0 ? timestamp : timestamp - (last?.timestamp ?? 0);
    const extended = field >= EXTENDED_TIMESTAMP;

    const basic = basicHeaderLength(chunkStreamId);
    const extra = extended ? 4 : 0;
    const continuations = Math.max(0, Math.ceil(payload.length / this.#chunkSize) - 1);
    const total = basic + headerLength(fmt) + extra + payload.length + continuations * (basic + extra);
    const out = Buffer.allocUnsafe(total);

    let at = writeBasicHeader(out, 0, fmt, chunkStreamId);
    if (fmt <= 2) at = out.writeUIntBE(extended ? EXTENDED_TIMESTAMP : field, at, 3);
    if (fmt <= 1) {
      at = out.writeUIntBE(payload.length, at, 3);
      at = out.writeUInt8(message.typeId, at);
    }
    if (fmt === 0) at = out.writeUInt32LE(message.streamId, at);
    if (extended) at = out.writeUInt32BE(field, at);

    for (let from = 0; from < payload.length; from += this.#chunkSize) {
      if (from > 0) {
        at = writeBasicHeader(out, at, 3, chunkStreamId);
        if (extended) at = out.writeUInt32BE(field, at);
      }
      const part = payload.subarray(from, from + this.#chunkSize);
      out.set(part, at);
      at += part.length;
    }
    this.#last.set(chunkStreamId, {
      timestamp,
      delta: fmt === 0 ? null : field,
      length: payload.length,
      typeId: message.typeId,
      streamId: message.streamId,
    });
    return out;
  }
}

function chooseFormat(message: RtmpMessage, timestamp: number, last: WrittenHeader | undefined): 0 | 1 | 2 | 3 {
  if (last === undefined || last.streamId !== message.streamId || timestamp < last.timestamp) return 0;
  if (last.length !== message.payload.length || last.typeId !== message.typeId) return 1;
  return last.delta === timestamp - last.timestamp ? 3 : 2;
}

function headerLength(fmt: 0 | 1 | 2 | 3): number {
  if (fmt === 0) return 11;
  if (fmt === 1) return 7;
  return fmt === 2 ? 3 : 0;
}

function basicHeaderLength(id: number): number {
  if (id >= FIRST_ID_OF_THREE_BYTES) return 3;
  return id >= FIRST_ID_OF_TWO_BYTES ? 2 : 1;
}

function writeBasicHeader(out: Buffer, at: number, fmt: number, id: number): number {
  if (id >= FIRST_ID_OF_THREE_BYTES) {
    out.writeUInt8((fmt << 6) | 1, at);
    return out.writeUInt16LE(id - FIRST_ID_OF_TWO_BYTES, at + 1);
  }
  if (id >= FIRST_ID_OF_TWO_BYTES) {
    out.writeUInt8(fmt << 6, at);
    return out.writeUInt8(id - FIRST_ID_OF_TWO_BYTES, at + 1);
  }
  return out.writeUInt8((fmt << 6) | id, at);
}
