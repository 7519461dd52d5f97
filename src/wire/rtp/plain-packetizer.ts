/** Codecs whose frames need little around them: VP8 (RFC 7741) and Opus (RFC 7587). */
import { type Packetizer, PayloadBuffer, type Payloads } from './packetizer.ts';

/** Start of a partition, partition 0. */
const VP8_START = 0x10;

/** `budget`: maximum bytes of a payload, descriptor included. */
export class Vp8Packetizer implements Packetizer {
  readonly #budget: number;
  readonly #out = new PayloadBuffer();

  constructor(budget: number) {
    this.#budget = budget;
  }

  /** Payloads of equal size, each behind the one-byte descriptor. */
  packetize(frame: Uint8Array): Payloads {
    this.#out.reset();
    const count = Math.max(1, Math.ceil(frame.length / (this.#budget - 1)));
    const size = Math.ceil(frame.length / count);
    for (let at = 0; at < frame.length; at += size) {
      this.#out.u8(at === 0 ? VP8_START : 0);
      this.#out.append(frame, at, Math.min(at + size, frame.length));
      this.#out.finish();
    }
    return this.#out.take();
  }
}

/** `budget`: maximum bytes of a payload. */
export class OpusPacketizer implements Packetizer {
  readonly #budget: number;
  readonly #sizes = new Uint32Array(1);

  constructor(budget: number) {
    this.#budget = budget;
  }

  /** Each frame is a packet; a frame beyond `budget` cannot be sent at all. */
  packetize(frame: Uint8Array): Payloads {
    if (frame.length === 0 || frame.length > this.#budget) return { bytes: frame.subarray(0, 0), sizes: this.#sizes.subarray(0, 0) };
    this.#sizes[0] = frame.length;
    return { bytes: frame, sizes: this.#sizes };
  }
}
