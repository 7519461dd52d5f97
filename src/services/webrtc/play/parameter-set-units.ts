/** Parameter sets for keyframes without any: browsers know them only from the stream itself. */
import { parameterSetsOf, parameterSetsOfConfig } from '../../../codecs/describe.ts';
import { joinNalUnits } from '../../../codecs/nal/convert.ts';
import type { Packet } from '../../../media/packet.ts';

export class ParameterSetUnits {
  #config: Uint8Array | null = null;
  #units: Uint8Array | null = null;

  /** NAL units with 4-byte lengths to send before `packet`; null if it has its own. Throws ProtocolError. */
  missingIn({ track, data }: Packet): Uint8Array | null {
    if (track.type !== 'video' || track.config === null || parameterSetsOf(track.codec, data) !== null) return null;
    if (this.#config !== track.config) {
      const { vps, sps, pps } = parameterSetsOfConfig(track.codec, track.config);
      this.#config = track.config;
      this.#units = joinNalUnits([...vps, ...sps, ...pps]);
    }
    return this.#units;
  }
}
