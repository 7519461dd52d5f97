/** Reads OVT packets from a byte stream in pieces of any size, and joins split contents. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { OvtPayloadType, PACKET_HEADER_LENGTH, type PacketHeader, parsePacketHeader, type TakenPackets } from './packet.ts';

/** Limits for the peer; beyond them the reader throws `ProtocolError`. */
export interface OvtReaderLimits extends TakenPackets {
  /** Bytes of one request or response. */
  readonly message: number;
  /** Bytes of one media packet; 0 refuses media. */
  readonly media: number;
}

/** Receives whole payloads, which it owns. */
export type PayloadHandler = (type: OvtPayloadType, payload: Uint8Array) => void;

const NOTHING = new Uint8Array(0);
const MIN_ROOM = 1024;

/** The received parts of one payload: a view of the first part while it is the only one, else copies in one buffer. */
class Assembly {
  #bytes: Uint8Array = NOTHING;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(piece: Uint8Array): void {
    const size = this.#size + piece.length;
    if (this.#size === 0) this.#bytes = piece;
    else {
      if (this.#size === this.#bytes.length || size > this.#bytes.length) this.#grow(size);
      this.#bytes.set(piece, this.#size);
    }
    this.#size = size;
  }

  take(): Uint8Array {
    const whole = this.#bytes.subarray(0, this.#size);
    this.#bytes = NOTHING;
    this.#size = 0;
    return whole;
  }

  /** Doubles the needed size, so that a payload of many small parts is not copied repeatedly. */
  #grow(size: number): void {
    const bytes = Buffer.allocUnsafeSlow(Math.max(2 * size, MIN_ROOM));
    bytes.set(this.#bytes.subarray(0, this.#size));
    this.#bytes = bytes;
  }
}

/** One for each connection. Memory grows with received bytes, up to the limits, not with announced lengths. */
export class OvtReader {
  readonly #limits: OvtReaderLimits;
  /** Messages may come between the parts of a media packet. */
  readonly #message = new Assembly();
  readonly #media = new Assembly();
  readonly #header = new Uint8Array(PACKET_HEADER_LENGTH);
  #headerBytes = 0;
  /** The packet whose payload is being read; null between packets. */
  #current: PacketHeader | null = null;
  #payloadLeft = 0;

  constructor(limits: OvtReaderLimits) {
    this.#limits = limits;
  }

  /**
   * Takes the next bytes, which must not be written to afterwards: payloads are views where that saves a copy.
   * Throws `ProtocolError`, after which the reader is useless.
   */
  push(chunk: Uint8Array, onPayload: PayloadHandler): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#current === null) {
        at = this.#readHeader(chunk, at);
        if (this.#current === null) return;
      }
      const count = Math.min(this.#payloadLeft, chunk.length - at);
      const { type } = this.#current;
      if (count > 0 && type !== null) this.#assemblyOf(type).add(chunk.subarray(at, at + count));
      at += count;
      this.#payloadLeft -= count;
      if (this.#payloadLeft === 0) this.#endPacket(this.#current, onPayload);
    }
  }

  /** Returns where the payload begins, or the end of the chunk while the header is incomplete. */
  #readHeader(chunk: Uint8Array, at: number): number {
    if (this.#headerBytes === 0 && chunk.length - at >= PACKET_HEADER_LENGTH) {
      this.#beginPacket(parsePacketHeader(chunk, at, this.#limits));
      return at + PACKET_HEADER_LENGTH;
    }
    const count = Math.min(PACKET_HEADER_LENGTH - this.#headerBytes, chunk.length - at);
    this.#header.set(chunk.subarray(at, at + count), this.#headerBytes);
    this.#headerBytes += count;
    if (this.#headerBytes === PACKET_HEADER_LENGTH) {
      this.#headerBytes = 0;
      this.#beginPacket(parsePacketHeader(this.#header, 0, this.#limits));
    }
    return at + count;
  }

  #beginPacket(header: PacketHeader): void {
    const { type, payloadLength } = header;
    const limit = type === OvtPayloadType.MEDIA ? this.#limits.media : this.#limits.message;
    const size = type === null ? 0 : this.#assemblyOf(type).size + payloadLength;
    if (size > limit) throw new ProtocolError('OVT_SIZE', `${size} bytes of payload type ${type}, at most ${limit} expected`);
    this.#current = header;
    this.#payloadLeft = payloadLength;
  }

  #endPacket({ type, marker }: PacketHeader, onPayload: PayloadHandler): void {
    this.#current = null;
    if (marker && type !== null) onPayload(type, this.#assemblyOf(type).take());
  }

  #assemblyOf(type: OvtPayloadType): Assembly {
    return type === OvtPayloadType.MEDIA ? this.#media : this.#message;
  }
}
