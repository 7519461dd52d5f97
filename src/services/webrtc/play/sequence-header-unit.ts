/** The sequence header of AV1 for keyframes without one: browsers know it only from the stream itself. */
import { findSequenceHeader, parseAv1c } from '../../../codecs/av1/av1c.ts';
import type { Packet } from '../../../media/packet.ts';

export class SequenceHeaderUnit {
  #config: Uint8Array | null = null;
  #unit: Uint8Array | null = null;

  /** The unit to send before `packet`; null if the packet has its own, or the header is unknown. Throws ProtocolError. */
  missingIn({ track, data }: Packet): Uint8Array | null {
    if (track.type !== 'video' || track.config === null || findSequenceHeader(data) !== null) return null;
    if (this.#config !== track.config) {
      this.#config = track.config;
      this.#unit = parseAv1c(track.config).sequenceHeader;
    }
    return this.#unit;
  }
}
