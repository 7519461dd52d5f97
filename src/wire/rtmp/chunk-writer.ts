/** Cuts messages into chunks (RTMP 1.0 §5.3); the counterpart of the chunk reader. */
import { DEFAULT_CHUNK_SIZE, MAX_MESSAGE_LENGTH, type RtmpMessage } from './message.ts';

const EXTENDED_TIMESTAMP = 0xff_ffff;
const FIRST_ID_OF_TWO_BYTES = 64;
const FIRST_ID_OF_THREE_BYTES = 320;
const LAST_ID = 65_599;

/** A message without its payload. */
export type MessageHead = Omit<RtmpMessage, 'payload'>;

type Format = 0 | 1 | 2 | 3;

interface WrittenHeader {
  timestamp: number;
  /** Null after a full header: readers interpret a following type 3 header differently. */
  delta: number | null;
  length: number;
  typeId: number;
  streamId: number;
}

/** Serialises messages with the shortest headers that the previous ones allow. */
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
    const { fmt, field } = this.#begin(message, payload.length);
    const extra = extendedLength(field);
    const continuations = Math.max(0, Math.ceil(payload.length / this.#chunkSize) - 1);
    const head = basicHeaderLength(chunkStreamId) + headerLength(fmt) + extra;
    const out = Buffer.allocUnsafe(head + payload.length + continuations * (basicHeaderLength(chunkStreamId) + extra));

    let at = writeMessageHeader(out, message, { fmt, field, length: payload.length });
    for (let from = 0; from < payload.length; from += this.#chunkSize) {
      if (from > 0) at = writeContinuation(out, at, chunkStreamId, field);
      const part = payload.subarray(from, from + this.#chunkSize);
      out.set(part, at);
      at += part.length;
    }
    return out;
  }

  /**
   * Like `write` for a payload in several pieces: appends the pieces to send to `out`, in order, and returns their total length. The
   * payload is not copied, so it must stay unchanged until it has been sent.
   */
  gather(message: MessageHead, payload: readonly Uint8Array[], out: Uint8Array[]): number {
    const { chunkStreamId } = message;
    const length = payload.reduce((sum, part) => sum + part.length, 0);
    const { fmt, field } = this.#begin(message, length);
    const head = Buffer.allocUnsafe(basicHeaderLength(chunkStreamId) + headerLength(fmt) + extendedLength(field));
    writeMessageHeader(head, message, { fmt, field, length });
    out.push(head);
    let total = head.length + length;
    let continuation: Buffer | null = null;
    let room = this.#chunkSize;
    for (const part of payload) {
      let from = 0;
      while (from < part.length) {
        if (room === 0) {
          continuation ??= continuationHeader(chunkStreamId, field);
          out.push(continuation);
          total += continuation.length;
          room = this.#chunkSize;
        }
        const to = Math.min(part.length, from + room);
        out.push(from === 0 && to === part.length ? part : part.subarray(from, to));
        room -= to - from;
        from = to;
      }
    }
    return total;
  }

  /** Chooses the header of a message and remembers it for the following messages. */
  #begin(message: MessageHead, length: number): { fmt: Format; field: number } {
    const { chunkStreamId, typeId, streamId } = message;
    if (chunkStreamId < 2 || chunkStreamId > LAST_ID) throw new TypeError(`chunk stream id out of range: ${chunkStreamId}`);
    if (length > MAX_MESSAGE_LENGTH) throw new TypeError(`message of ${length} bytes is too long`);
    const timestamp = message.timestamp >>> 0;
    const last = this.#last.get(chunkStreamId);
    const fmt = chooseFormat({ timestamp, typeId, streamId, length }, last);
    const field = fmt === 0 ? timestamp : timestamp - (last?.timestamp ?? 0);
    this.#last.set(chunkStreamId, { timestamp, delta: fmt === 0 ? null : field, length, typeId, streamId });
    return { fmt, field };
  }
}

function chooseFormat(next: Omit<WrittenHeader, 'delta'>, last: WrittenHeader | undefined): Format {
  if (last === undefined || last.streamId !== next.streamId || next.timestamp < last.timestamp) return 0;
  if (last.length !== next.length || last.typeId !== next.typeId) return 1;
  return last.delta === next.timestamp - last.timestamp ? 3 : 2;
}

/** Writes the header of the first chunk to the start of `out`; returns where it ends. */
function writeMessageHeader(
  out: Buffer,
  message: MessageHead,
  { fmt, field, length }: { fmt: Format; field: number; length: number },
): number {
  let at = writeBasicHeader(out, 0, fmt, message.chunkStreamId);
  if (fmt <= 2) at = out.writeUIntBE(Math.min(field, EXTENDED_TIMESTAMP), at, 3);
  if (fmt <= 1) {
    at = out.writeUIntBE(length, at, 3);
    at = out.writeUInt8(message.typeId, at);
  }
  if (fmt === 0) at = out.writeUInt32LE(message.streamId, at);
  return field >= EXTENDED_TIMESTAMP ? out.writeUInt32BE(field, at) : at;
}

function writeContinuation(out: Buffer, at: number, chunkStreamId: number, field: number): number {
  const end = writeBasicHeader(out, at, 3, chunkStreamId);
  return field >= EXTENDED_TIMESTAMP ? out.writeUInt32BE(field, end) : end;
}

function continuationHeader(chunkStreamId: number, field: number): Buffer {
  const header = Buffer.allocUnsafe(basicHeaderLength(chunkStreamId) + extendedLength(field));
  writeContinuation(header, 0, chunkStreamId, field);
  return header;
}

function extendedLength(field: number): number {
  return field >= EXTENDED_TIMESTAMP ? 4 : 0;
}

function headerLength(fmt: Format): number {
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
