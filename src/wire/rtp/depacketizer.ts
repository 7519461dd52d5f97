/** Turns the payloads of RTP packets into access units or frames. */
import type { RtpPacket } from './rtp-packet.ts';

/** One access unit or frame. */
export interface DepacketizedUnit {
  /** 32 bits, as on the wire; computed for the later audio frames of a packet. */
  readonly timestamp: number;
  /** H.264 and H.265: NAL units behind 4-byte lengths. A buffer of its own. */
  readonly data: Uint8Array;
}

/** Called with units within `push`. */
export type DepacketizerSink = (unit: DepacketizedUnit) => void;

/** One for each source: keeps the beginning of an incomplete unit. */
export interface Depacketizer {
  /**
   * Takes the next packet in order; `lost`: packets before it are missing. Damaged units are dropped. Throws `ProtocolError` for an invalid
   * payload.
   */
  push(packet: RtpPacket, lost: boolean, sink: DepacketizerSink): void;
}

/** Codecs with one whole frame in every packet: Opus (RFC 7587), G.711 (RFC 3551 §4.5.14). */
export class FrameDepacketizer implements Depacketizer {
  push(packet: RtpPacket, _lost: boolean, sink: DepacketizerSink): void {
    if (packet.payload.length > 0) sink({ timestamp: packet.timestamp, data: packet.payload.slice() });
  }
}
