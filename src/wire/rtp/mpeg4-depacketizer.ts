/** AAC out of RTP, RFC 3640 (`mpeg4-generic`), without interleaving. */
import { BitReader } from '../../util/bit-reader.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { Depacketizer, DepacketizerSink } from './depacketizer.ts';
import type { RtpPacket } from './rtp-packet.ts';

/** Lengths of the fields of an AU header, bits, from the session description. */
export interface Mpeg4Layout {
  readonly sizeLength: number;
  readonly indexLength: number;
  readonly indexDeltaLength: number;
  /** Clock ticks of a frame. */
  readonly frameTicks: number;
}

const MAX_FRAME = 65_536;
/** Limit of packets in a frame: each is kept until the frame is complete, and the smallest has one byte. */
const MAX_PARTS = 1024;

/** Extracts several frames from a packet, and joins a frame that spans several packets. */
export class Mpeg4Depacketizer implements Depacketizer {
  readonly #layout: Mpeg4Layout;
  #parts: Uint8Array[] = [];
  #partBytes = 0;

  constructor(layout: Mpeg4Layout) {
    this.#layout = layout;
  }

  push(packet: RtpPacket, lost: boolean, sink: DepacketizerSink): void {
    const { sizeLength, indexLength, indexDeltaLength, frameTicks } = this.#layout;
    const { payload } = packet;
    if (lost) this.#forget();
    const bits = ((payload[0] ?? 0) << 8) | (payload[1] ?? 0);
    const dataAt = 2 + Math.ceil(bits / 8);
    if (payload.length <= dataAt) throw new ProtocolError('RTP_MPEG4', `AU headers of ${bits} bits in ${payload.length} bytes`, 0);
    const headers = new BitReader(payload, 2, dataAt);
    let at = dataAt;
    for (let read = 0, count = 0; read + sizeLength <= bits && at < payload.length; count += 1) {
      const size = headers.bits(sizeLength);
      const indexBits = count === 0 ? indexLength : indexDeltaLength;
      if (indexBits > 0 && headers.bits(indexBits) !== 0 && count > 0)
        throw new ProtocolError('RTP_MPEG4', 'interleaving is not supported', 2);
      read += sizeLength + indexBits;
      if (at + size > payload.length) {
        if (count > 0) throw new ProtocolError('RTP_MPEG4', `frame of ${size} bytes, ${payload.length - at} left`, at);
        this.#addPart(packet, payload.subarray(at), size, sink);
        return;
      }
      const timestamp = (packet.timestamp + count * frameTicks) >>> 0;
      if (size > 0) sink({ timestamp, data: payload.slice(at, at + size) });
      at += size;
    }
  }

  /** Every packet of a fragmented frame announces the size of the whole. */
  #addPart(packet: RtpPacket, part: Uint8Array, size: number, sink: DepacketizerSink): void {
    this.#parts.push(part.slice());
    this.#partBytes += part.length;
    if (this.#partBytes > MAX_FRAME || this.#parts.length > MAX_PARTS) {
      this.#forget();
      throw new ProtocolError('RTP_MPEG4', `fragmented frame of more than ${MAX_FRAME} bytes or ${MAX_PARTS} packets`);
    }
    if (!packet.marker && this.#partBytes < size) return;
    if (this.#partBytes === size) sink({ timestamp: packet.timestamp, data: Buffer.concat(this.#parts) });
    this.#forget();
  }

  #forget(): void {
    this.#parts = [];
    this.#partBytes = 0;
  }
}
