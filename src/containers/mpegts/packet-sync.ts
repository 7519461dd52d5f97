/** Finds transport stream packets in bytes that come in pieces of any size, ISO/IEC 13818-1 §2.4.3.2. */
import { TS_PACKET_LENGTH, TS_SYNC } from './ts-buffer.ts';

/** First byte of every packet. */

/** Receives one packet of 188 bytes: `data[at]` is its sync byte. The bytes are valid during the call only. */
export type TsPacketSink = (data: Uint8Array, at: number) => void;

/**
 * Cuts pieces into packets. A piece of whole packets, such as a datagram, is read in place; only a packet that spans two pieces is copied.
 * Bytes that belong to no packet are counted and skipped.
 */
export class PacketSync {
  /** Bytes outside of packets. */
  skipped = 0;
  readonly #sink: TsPacketSink;
  /** The beginning of an incomplete packet. */
  readonly #carry = new Uint8Array(TS_PACKET_LENGTH);
  #carried = 0;

  constructor(sink: TsPacketSink) {
    this.#sink = sink;
  }

  push(data: Uint8Array): void {
    let at = 0;
    if (this.#carried > 0) {
      at = this.#complete(data);
      if (this.#carried > 0) return;
    }
    while (at + TS_PACKET_LENGTH <= data.length) {
      if (isPacket(data, at)) {
        this.#sink(data, at);
        at += TS_PACKET_LENGTH;
      } else {
        at += 1;
        this.skipped += 1;
      }
    }
    while (at < data.length && data[at] !== TS_SYNC) {
      at += 1;
      this.skipped += 1;
    }
    this.#carry.set(data.subarray(at));
    this.#carried = data.length - at;
  }

  /** Forgets an incomplete packet, because the next piece does not continue the last one. */
  reset(): void {
    this.skipped += this.#carried;
    this.#carried = 0;
  }

  /** Completes the packet that the last piece began; returns where in `data` the next packet begins. */
  #complete(data: Uint8Array): number {
    const missing = TS_PACKET_LENGTH - this.#carried;
    // A peer that truncated a packet continues with a whole one: the truncated packet is dropped.
    const torn = data[0] === TS_SYNC && data.length > missing && data[missing] !== TS_SYNC;
    if (torn) {
      this.reset();
      return 0;
    }
    const taken = Math.min(missing, data.length);
    this.#carry.set(data.subarray(0, taken), this.#carried);
    this.#carried += taken;
    if (this.#carried < TS_PACKET_LENGTH) return data.length;
    this.#carried = 0;
    this.#sink(this.#carry, 0);
    return taken;
  }
}

/** A sync byte is accepted if another one follows a packet later, or the data ends before that. */
function isPacket(data: Uint8Array, at: number): boolean {
  if (data[at] !== TS_SYNC) return false;
  const next = data[at + TS_PACKET_LENGTH];
  return next === undefined || next === TS_SYNC;
}
