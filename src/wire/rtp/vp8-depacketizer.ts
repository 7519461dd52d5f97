/** VP8 out of RTP, RFC 7741 §4. */
import { ProtocolError } from '../../util/protocol-error.ts';
import type { Depacketizer, DepacketizerSink } from './depacketizer.ts';
import type { RtpPacket } from './rtp-packet.ts';

const MAX_FRAME = 8_388_608;
/** Limit of packets in a frame: each is kept until the frame is complete, and the smallest has one byte. */
const MAX_PARTS = 16_384;

/** A frame extends from the start of partition 0 to the marker bit. */
export class Vp8Depacketizer implements Depacketizer {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #whole = false;

  push(packet: RtpPacket, lost: boolean, sink: DepacketizerSink): void {
    if (lost) this.#whole = false;
    const start = descriptorLength(packet.payload);
    const first = packet.payload[0] ?? 0;
    // Start of partition 0.
    if ((first & 0x17) === 0x10) {
      this.#parts = [];
      this.#bytes = 0;
      this.#whole = true;
    }
    if (!this.#whole) return;
    const part = packet.payload.subarray(start);
    this.#bytes += part.length;
    if (this.#bytes > MAX_FRAME || this.#parts.length >= MAX_PARTS) {
      this.#whole = false;
      this.#parts = [];
      throw new ProtocolError('RTP_VP8', `frame of more than ${MAX_FRAME} bytes or ${MAX_PARTS} packets`);
    }
    this.#parts.push(part.slice());
    if (!packet.marker) return;
    sink({ timestamp: packet.timestamp, data: Buffer.concat(this.#parts) });
    this.#parts = [];
    this.#whole = false;
  }
}

/** X R N S R PID | [I L T K …] | [picture id 8 or 16] | [TL0PICIDX] | [TID, KEYIDX] */
function descriptorLength(payload: Uint8Array): number {
  let at = 1;
  if (((payload[0] ?? 0) & 0x80) !== 0) {
    const extension = payload[1] ?? 0;
    at = 2;
    if ((extension & 0x80) !== 0) at += ((payload[at] ?? 0) & 0x80) !== 0 ? 2 : 1;
    if ((extension & 0x40) !== 0) at += 1;
    if ((extension & 0x30) !== 0) at += 1;
  }
  if (at >= payload.length) throw new ProtocolError('RTP_VP8', `descriptor of ${at} bytes in ${payload.length}`, 0);
  return at;
}
