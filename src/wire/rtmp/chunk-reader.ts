/** Reassembles messages from a chunk stream (RTMP 1.0 §5.3). */
import { ProtocolError } from '../../util/protocol-error.ts';
import { Slab } from '../../util/slab.ts';
import { DEFAULT_CHUNK_SIZE, MAX_MESSAGE_LENGTH, MessageType, type RtmpMessage } from './message.ts';

/*
 * Basic header                Message header, by fmt
 *  0 1 2 3 4 5 6 7            0: timestamp(3) length(3) type(1) stream(4, little-endian)
 * +-+-+-+-+-+-+-+-+           1: delta(3)     length(3) type(1)
 * |fmt|  cs id    | (1..3)    2: delta(3)
 * +-+-+-+-+-+-+-+-+           3: nothing
 * then 4 bytes extended timestamp when the 3-byte field was 0xffffff
 */
const MESSAGE_HEADER_LENGTH = [11, 7, 3, 0] as const;
const MAX_HEADER = 3 + 11 + 4;
const EXTENDED_TIMESTAMP = 0xff_ffff;
const EXTENDED_TIMESTAMP_LENGTH = 4;

/** Limits of the memory that a peer can make a reader hold. */
export interface ChunkReaderLimits {
  /** Largest audio, video or aggregate message, bytes. */
  readonly mediaBytes: number;
  /** Largest message of any other type, bytes. */
  readonly controlBytes: number;
  /** Bytes of all unfinished messages together, as their headers announce them. */
  readonly pendingBytes: number;
  /** Distinct chunk streams. */
  readonly chunkStreams: number;
  /**
   * Memory for this many bytes of a message is allocated before they arrive, for further bytes as they arrive. Complete messages of a peer
   * raise the limit.
   */
  readonly trustedBytes: number;
}

/** Room for any message a header can announce. */
export const DEFAULT_CHUNK_READER_LIMITS: ChunkReaderLimits = {
  mediaBytes: MAX_MESSAGE_LENGTH,
  controlBytes: 262_144,
  pendingBytes: 2 * MAX_MESSAGE_LENGTH,
  chunkStreams: 64,
  trustedBytes: 65_536,
};

/** Minimum of memory that every message may take, however much is unfinished: most messages other than media are shorter. */
const MIN_ROOM = 4096;
/** Limit of memory allocated ahead for unfinished messages, as a multiple of `trustedBytes`. */
const MAX_AHEAD = 4;
/** After a complete message a peer is trusted with one this many times as long, because keyframes differ in size. */
const TRUST_GROWTH = 2;

interface ChunkStream {
  readonly id: number;
  timestamp: number;
  /** The last timestamp field (absolute or delta), which a type 3 header repeats. */
  timestampField: number;
  extended: boolean;
  length: number;
  typeId: number;
  streamId: number;
  /** Null between messages; shorter than the message until the rest of it comes. */
  payload: Buffer | null;
  received: number;
}

/** Shared by all connections: payloads live until their packets are published. */
const PAYLOADS = new Slab();

/**
 * Turns bytes in pieces of any size into messages. Each message is copied into its own memory, once unless it is much longer than earlier
 * messages: memory grows with received bytes, not with announced lengths. Throws `ProtocolError`, after which the reader must not be used
 * again.
 */
export class ChunkReader {
  /** Unfinished messages given up: aborted by the peer or cut off by a new header. */
  discarded = 0;
  readonly #onMessage: (message: RtmpMessage) => void;
  readonly #onDiscard: () => void;
  readonly #streams = new Map<number, ChunkStream>();
  readonly #header = Buffer.alloc(MAX_HEADER);
  #limits: ChunkReaderLimits;
  #headerLength = 0;
  #chunkSize = DEFAULT_CHUNK_SIZE;
  #current: ChunkStream | null = null;
  #chunkRemaining = 0;
  #pendingBytes = 0;
  /** Bytes allocated for unfinished messages that have not arrived yet. */
  #aheadBytes = 0;
  /** Bytes that may be allocated when a message begins. */
  #trustedBytes: number;

  /** `onDiscard` is called for each dropped message; it may throw `ProtocolError` if there are too many. */
  constructor(options: { onMessage: (message: RtmpMessage) => void; onDiscard?: () => void; limits?: ChunkReaderLimits }) {
    this.#onMessage = options.onMessage;
    this.#onDiscard = options.onDiscard ?? (() => undefined);
    this.#limits = options.limits ?? DEFAULT_CHUNK_READER_LIMITS;
    this.#trustedBytes = this.#limits.trustedBytes;
  }

  /** The peer's current chunk size. */
  get chunkSize(): number {
    return this.#chunkSize;
  }

  /** Announced bytes of messages that are not complete yet. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Memory held for messages that are not complete yet, bytes. */
  get heldBytes(): number {
    let bytes = 0;
    for (const { payload } of this.#streams.values()) bytes += payload?.length ?? 0;
    return bytes;
  }

  /** Applies the peer's SetChunkSize. Sizes above the longest message make no difference. */
  setChunkSize(size: number): void {
    if (size < 1 || size > 0x7fff_ffff) throw new ProtocolError('RTMP_CHUNK_SIZE', `chunk size must be 1..2147483647, got ${size}`);
    this.#chunkSize = Math.min(size, MAX_MESSAGE_LENGTH);
  }

  /** Replaces the limits, for messages that start from now on. */
  setLimits(limits: ChunkReaderLimits): void {
    this.#limits = limits;
    this.#trustedBytes = Math.max(this.#trustedBytes, limits.trustedBytes);
  }

  /** Drops the unfinished message on a chunk stream (Abort Message). */
  abort(chunkStreamId: number): void {
    const stream = this.#streams.get(chunkStreamId);
    if (stream !== undefined) this.#discard(stream);
  }

  /** Takes the bytes of `data` from `start` to `limit`; calls `onMessage` for every message they complete. `data` is not kept. */
  push(data: Buffer, start = 0, limit: number = data.length): void {
    let offset = start;
    while (offset < limit) {
      offset = this.#current === null ? this.#readHeader(data, offset, limit) : this.#readPayload(this.#current, data, offset, limit);
    }
  }

  #readPayload(stream: ChunkStream, data: Buffer, offset: number, limit: number): number {
    const end = Math.min(limit, offset + this.#chunkRemaining);
    const payload = this.#roomFor(stream, stream.received + end - offset);
    data.copy(payload, stream.received, offset, end);
    stream.received += end - offset;
    this.#aheadBytes -= end - offset;
    this.#chunkRemaining -= end - offset;
    if (this.#chunkRemaining === 0) {
      this.#current = null;
      if (stream.received === stream.length) this.#finish(stream, payload);
    }
    return end;
  }

  /** The payload of `stream`, with room for its first `needed` bytes: at least doubled when it has to grow, so that few bytes are copied twice. */
  #roomFor(stream: ChunkStream, needed: number): Buffer {
    const { payload } = stream;
    if (payload === null) throw new Error('a chunk without a message');
    if (needed <= payload.length) return payload;
    const larger = PAYLOADS.allocate(Math.min(stream.length, Math.max(needed, 2 * payload.length)));
    payload.copy(larger, 0, 0, stream.received);
    this.#aheadBytes += larger.length - payload.length;
    stream.payload = larger;
    return larger;
  }

  #finish(stream: ChunkStream, payload: Buffer): void {
    stream.payload = null;
    stream.received = 0;
    this.#pendingBytes -= stream.length;
    if (stream.length * TRUST_GROWTH > this.#trustedBytes) this.#trustedBytes = stream.length * TRUST_GROWTH;
    this.#onMessage({
      chunkStreamId: stream.id,
      typeId: stream.typeId,
      streamId: stream.streamId,
      timestamp: stream.timestamp,
      payload,
    });
  }

  /** Collects header bytes until they are complete; returns the new offset. */
  #readHeader(data: Buffer, start: number, limit: number): number {
    let offset = start;
    for (;;) {
      const needed = this.#headerBytesNeeded();
      if (this.#headerLength >= needed) {
        this.#applyHeader();
        return offset;
      }
      const end = Math.min(limit, offset + needed - this.#headerLength);
      // The copy is so short that a function call would cost more.
      for (; offset < end; offset += 1, this.#headerLength += 1) this.#header[this.#headerLength] = data[offset] ?? 0;
      if (this.#headerLength < needed) return offset;
    }
  }

  /** Length of the header as far as its collected bytes tell. */
  #headerBytesNeeded(): number {
    if (this.#headerLength === 0) return 1;
    const first = this.#header[0] ?? 0;
    const basic = basicHeaderLength(first);
    if (this.#headerLength < basic) return basic;
    const fmt = first >> 6;
    const needed = basic + (MESSAGE_HEADER_LENGTH[fmt] ?? 0);
    if (this.#headerLength < needed) return needed;
    const extended =
      fmt === 3 ? (this.#streams.get(this.#chunkStreamId())?.extended ?? false) : this.#header24(basic) === EXTENDED_TIMESTAMP;
    return extended ? needed + EXTENDED_TIMESTAMP_LENGTH : needed;
  }

  #chunkStreamId(): number {
    const id = (this.#header[0] ?? 0) & 0x3f;
    if (id === 0) return 64 + (this.#header[1] ?? 0);
    if (id === 1) return 64 + (this.#header[1] ?? 0) + (this.#header[2] ?? 0) * 256;
    return id;
  }

  #applyHeader(): void {
    const fmt = (this.#header[0] ?? 0) >> 6;
    const basic = basicHeaderLength(this.#header[0] ?? 0);
    const stream = this.#streamFor(this.#chunkStreamId(), fmt);
    const headerLength = this.#headerLength;
    this.#headerLength = 0;
    if (fmt === 3 && stream.payload !== null) {
      this.#startChunk(stream);
      if (stream.extended) this.#checkRepeatedTimestamp(stream, headerLength);
      return;
    }
    if (stream.payload !== null) this.#discard(stream);
    this.#readFields(stream, fmt, basic);
    this.#startMessage(stream);
  }

  #streamFor(id: number, fmt: number): ChunkStream {
    const known = this.#streams.get(id);
    if (known !== undefined) return known;
    // A type 1 header has all fields but the message stream id, and some clients open a chunk stream with it.
    if (fmt > 1) throw new ProtocolError('RTMP_CHUNK_HEADER', `chunk stream ${id} starts with a type ${fmt} header`);
    if (this.#streams.size >= this.#limits.chunkStreams) {
      throw new ProtocolError('RTMP_CHUNK_STREAMS', `more than ${this.#limits.chunkStreams} chunk streams`);
    }
    const stream: ChunkStream = {
      id,
      timestamp: 0,
      timestampField: 0,
      extended: false,
      length: 0,
      typeId: 0,
      streamId: 0,
      payload: null,
      received: 0,
    };
    this.#streams.set(id, stream);
    return stream;
  }

  #readFields(stream: ChunkStream, fmt: number, basic: number): void {
    const header = this.#header;
    if (fmt <= 1) {
      stream.length = this.#header24(basic + 3);
      stream.typeId = header[basic + 6] ?? 0;
    }
    if (fmt === 0) stream.streamId = header.readUInt32LE(basic + 7);
    if (fmt <= 2) {
      stream.timestampField = this.#header24(basic);
      stream.extended = stream.timestampField === EXTENDED_TIMESTAMP;
    }
    if (stream.extended) stream.timestampField = header.readUInt32BE(basic + (MESSAGE_HEADER_LENGTH[fmt] ?? 0));
    stream.timestamp = fmt === 0 ? stream.timestampField : (stream.timestamp + stream.timestampField) >>> 0;
  }

  /** Three header bytes as a number, big-endian. */
  #header24(at: number): number {
    return ((this.#header[at] ?? 0) << 16) | ((this.#header[at + 1] ?? 0) << 8) | (this.#header[at + 2] ?? 0);
  }

  #startMessage(stream: ChunkStream): void {
    const limit = isMedia(stream.typeId) ? this.#limits.mediaBytes : this.#limits.controlBytes;
    if (stream.length > limit) {
      throw new ProtocolError('RTMP_MESSAGE_SIZE', `message of type ${stream.typeId} announces ${stream.length} bytes, limit ${limit}`);
    }
    if (this.#pendingBytes + stream.length > this.#limits.pendingBytes) {
      throw new ProtocolError('RTMP_PENDING_BYTES', `unfinished messages announce more than ${this.#limits.pendingBytes} bytes`);
    }
    this.#pendingBytes += stream.length;
    const payload = PAYLOADS.allocate(Math.min(stream.length, this.#room));
    this.#aheadBytes += payload.length;
    stream.payload = payload;
    stream.received = 0;
    if (stream.length === 0) this.#finish(stream, payload);
    else this.#startChunk(stream);
  }

  /** Bytes to allocate when a message begins. */
  get #room(): number {
    const left = Math.max(MAX_AHEAD * this.#limits.trustedBytes, this.#trustedBytes) - this.#aheadBytes;
    return Math.max(MIN_ROOM, Math.min(this.#trustedBytes, left));
  }

  #startChunk(stream: ChunkStream): void {
    this.#current = stream;
    this.#chunkRemaining = Math.min(this.#chunkSize, stream.length - stream.received);
  }

  /**
   * A continuation chunk repeats the extended timestamp, but some encoders leave it out: then the
   * four bytes taken for it are payload already.
   */
  #checkRepeatedTimestamp(stream: ChunkStream, headerLength: number): void {
    const at = headerLength - EXTENDED_TIMESTAMP_LENGTH;
    if (this.#header.readUInt32BE(at) === stream.timestampField) return;
    this.push(Buffer.from(this.#header.subarray(at, headerLength)));
  }

  #discard(stream: ChunkStream): void {
    if (stream.payload === null) return;
    this.#aheadBytes -= stream.payload.length - stream.received;
    stream.payload = null;
    stream.received = 0;
    this.#pendingBytes -= stream.length;
    this.discarded += 1;
    // The peer announced more than it sent.
    this.#trustedBytes = this.#limits.trustedBytes;
    if (this.#current === stream) this.#current = null;
    this.#onDiscard();
  }
}

function basicHeaderLength(first: number): number {
  const id = first & 0x3f;
  if (id === 0) return 2;
  return id === 1 ? 3 : 1;
}

function isMedia(typeId: number): boolean {
  return typeId === MessageType.AUDIO || typeId === MessageType.VIDEO || typeId === MessageType.AGGREGATE;
}
