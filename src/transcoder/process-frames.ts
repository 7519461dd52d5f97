/**
 * Frames between the server and a transcoder process, both ways over one socket pair. All integers are little-endian,
 * because both ends are the same machine.
 *
 *    0                   4        5        6                 8
 *   +-------------------+--------+--------+-----------------+-------------------+
 *   | payload length    | type   | flags  | zero            | job               |
 *   +-------------------+--------+--------+-----------------+-------------------+
 *  12                  16                                  24
 *   +-------------------+-----------------------------------+-------------------+
 *   | track or encode   | pts (float64)                     | dts (float64) …   |
 *   +-------------------+-----------------------------------+-------------------+
 *  32                  36                  40
 *   | duration          | zero              | payload …
 */
import { ProtocolError } from '../util/protocol-error.ts';

/** The byte at 4. Below 16 to the child, from 16 on to the server; `PACKET` and `TAKEN` go both ways. */
export const FrameType = {
  /** To the child: a job with its encodes (JSON). */
  OPEN: 1,
  /** To the child: an inbound track as of the next packet (JSON). */
  SOURCE: 2,
  /** Both ways: a coded packet; `id` is the inbound track, or the encode on the way back. */
  PACKET: 3,
  /** To the child: keyframe of encode `id`, please: at `pts` (1/90000 s), or soon where that is 0. */
  KEYFRAME: 4,
  /** To the child: the job ends. */
  CLOSE: 5,
  /** To a process that reads a file: continue from `pts` ms (0: the beginning); packets of this run carry `job`. */
  SEEK: 6,
  /** To the server: abilities of the process (JSON). The first frame of a child. */
  HELLO: 16,
  /** To the server: parameters of encode `id` (JSON), before the first packet that needs them. */
  TRACK: 17,
  /** To the server: encode `id` cannot be made (JSON). */
  FAILED: 18,
  /** To the server: `duration` packets of track `id` have gone into the decoder. To a process that reads a file: they have been taken. */
  TAKEN: 19,
  /** To the server: the job is gone. */
  CLOSED: 20,
  /** To the server, once a second: still alive, active codecs, queues (JSON). */
  STATUS: 21,
  /** To the server: a line for the log (JSON). */
  NOTICE: 22,
  /** To the server: contents of the file (JSON). */
  FILE: 23,
  /** To the server: the file has ended. */
  END: 24,
  /** To the server: the file is being read, though there is nothing to send yet. */
  PROGRESS: 25,
} as const;
/** Any of these numbers. */
export type FrameType = (typeof FrameType)[keyof typeof FrameType];

/** Bits of the byte at 5. */
export const FrameFlag = {
  KEYFRAME: 1,
  /** Packets were dropped before this packet. */
  DISCONTINUITY: 2,
} as const;

/** Bytes before the payload. */
export const FRAME_HEADER_SIZE = 40;
/** More than any coded frame the server accepts. */
export const MAX_FRAME_PAYLOAD = 64 * 1024 * 1024;

const KNOWN_TYPES: ReadonlySet<number> = new Set(Object.values(FrameType));
const KNOWN_FLAGS = FrameFlag.KEYFRAME | FrameFlag.DISCONTINUITY;
const EMPTY = Buffer.alloc(0);

/** Everything of a frame but its payload. Members that a type does not use are 0. */
export interface FrameHeader {
  type: FrameType;
  flags: number;
  job: number;
  id: number;
  /** Ticks of the track. */
  pts: number;
  dts: number;
  duration: number;
}

/** Header bytes of a frame whose payload has `length` bytes. */
export function serializeFrameHeader(header: FrameHeader, length: number): Buffer {
  const out = Buffer.allocUnsafe(FRAME_HEADER_SIZE);
  out.writeUInt32LE(length, 0);
  out.writeUInt8(header.type, 4);
  out.writeUInt8(header.flags, 5);
  out.writeUInt16LE(0, 6);
  out.writeUInt32LE(header.job, 8);
  out.writeUInt32LE(header.id, 12);
  out.writeDoubleLE(header.pts, 16);
  out.writeDoubleLE(header.dts, 24);
  out.writeUInt32LE(header.duration, 32);
  out.writeUInt32LE(0, 36);
  return out;
}

/** Parses the 40 bytes at `offset` into `header`; returns the payload's length. Throws `TRANSCODER_FRAME`. */
function parseFrameHeader(data: Buffer, offset: number, header: FrameHeader): number {
  if (data.length - offset < FRAME_HEADER_SIZE) throw new ProtocolError('TRANSCODER_FRAME', 'header ends early', data.length);
  const length = data.readUInt32LE(offset);
  if (length > MAX_FRAME_PAYLOAD) throw new ProtocolError('TRANSCODER_FRAME', `payload of ${length} bytes`, offset);
  const type = data.readUInt8(offset + 4);
  if (!KNOWN_TYPES.has(type)) throw new ProtocolError('TRANSCODER_FRAME', `type ${type}`, offset + 4);
  const flags = data.readUInt8(offset + 5);
  if ((flags & ~KNOWN_FLAGS) !== 0) throw new ProtocolError('TRANSCODER_FRAME', `flags ${flags}`, offset + 5);
  if (data.readUInt16LE(offset + 6) !== 0 || data.readUInt32LE(offset + 36) !== 0)
    throw new ProtocolError('TRANSCODER_FRAME', 'reserved bytes are not zero', offset + 6);
  header.type = type as FrameType;
  header.flags = flags;
  header.job = data.readUInt32LE(offset + 8);
  header.id = data.readUInt32LE(offset + 12);
  header.pts = data.readDoubleLE(offset + 16);
  header.dts = data.readDoubleLE(offset + 24);
  if (!Number.isSafeInteger(header.pts) || !Number.isSafeInteger(header.dts))
    throw new ProtocolError('TRANSCODER_FRAME', 'timestamps are not whole numbers', offset + 16);
  header.duration = data.readUInt32LE(offset + 32);
  return length;
}

/**
 * Cuts a byte stream into frames. A payload inside one chunk is a view into it; a payload that spans chunks is copied together. `header` is
 * reused: the receiver must not keep it.
 */
export class FrameReader {
  readonly #onFrame: (header: FrameHeader, payload: Buffer) => void;
  readonly #header: FrameHeader = { type: FrameType.STATUS, flags: 0, job: 0, id: 0, pts: 0, dts: 0, duration: 0 };
  readonly #headerBytes = Buffer.alloc(FRAME_HEADER_SIZE);
  #headerFilled = 0;
  /** The payload being put together; null while a header is read. */
  #payload: Buffer | null = null;
  #payloadFilled = 0;

  constructor(onFrame: (header: FrameHeader, payload: Buffer) => void) {
    this.#onFrame = onFrame;
  }

  /** Takes the next bytes. Throws `TRANSCODER_FRAME`; the stream cannot be read on after that. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) at = this.#payload === null ? this.#readHeader(chunk, at) : this.#readPayload(chunk, at, this.#payload);
  }

  #readHeader(chunk: Buffer, at: number): number {
    if (this.#headerFilled === 0 && chunk.length - at >= FRAME_HEADER_SIZE) {
      return this.#begin(chunk, at + FRAME_HEADER_SIZE, parseFrameHeader(chunk, at, this.#header));
    }
    const copied = chunk.copy(this.#headerBytes, this.#headerFilled, at, at + FRAME_HEADER_SIZE - this.#headerFilled);
    this.#headerFilled += copied;
    if (this.#headerFilled < FRAME_HEADER_SIZE) return at + copied;
    this.#headerFilled = 0;
    return this.#begin(chunk, at + copied, parseFrameHeader(this.#headerBytes, 0, this.#header));
  }

  /** The header is complete and the payload starts at `at`. */
  #begin(chunk: Buffer, at: number, length: number): number {
    if (chunk.length - at >= length) {
      this.#onFrame(this.#header, length === 0 ? EMPTY : chunk.subarray(at, at + length));
      return at + length;
    }
    this.#payload = Buffer.allocUnsafe(length);
    this.#payloadFilled = 0;
    return this.#readPayload(chunk, at, this.#payload);
  }

  #readPayload(chunk: Buffer, at: number, payload: Buffer): number {
    const copied = chunk.copy(payload, this.#payloadFilled, at);
    this.#payloadFilled += copied;
    if (this.#payloadFilled === payload.length) {
      this.#payload = null;
      this.#onFrame(this.#header, payload);
    }
    return at + copied;
  }
}
