/** H.264 and H.265 of a transport stream: Annex B access units → 4-byte lengths and a configuration record. */
import { H264NalType, h264NalType } from '../../codecs/h264/nal-type.ts';
import { H265NalType, h265NalType } from '../../codecs/h265/nal-type.ts';
import { annexbToLengthPrefixed, type NalFilter } from '../../codecs/nal/convert.ts';
import { parameterSetsOf, updateConfig } from '../../codecs/parameter-sets.ts';
import { VideoCodec } from '../../media/codec.ts';
import type { UnitReader, UnitSink } from './elementary-unit.ts';
import type { PesPacket } from './ts-demuxer.ts';

/** Takes a PES packet as one access unit, as multiplexers of live streams write them. */
export class VideoUnits implements UnitReader {
  config: Uint8Array | null = null;
  readonly #codec: VideoCodec;
  readonly #keep: NalFilter;
  #lastDts: number | null = null;

  constructor(codec: VideoCodec) {
    this.#codec = codec;
    this.#keep = codec === VideoCodec.H264 ? keepsH264 : keepsH265;
  }

  read(packet: PesPacket, sink: UnitSink): void {
    const data = annexbToLengthPrefixed(packet.data, this.#keep);
    if (data.length === 0) return;
    const sets = parameterSetsOf(this.#codec, data);
    if (sets !== null) this.config = updateConfig(this.#codec, this.config, sets) ?? this.config;
    // Of a packet without a time nobody knows when to show it; the second field of a picture is written like that.
    const dts = packet.dts ?? this.#lastDts;
    if (dts === null) return;
    this.#lastDts = dts;
    sink({ pts: packet.pts ?? dts, dts, data });
  }
}

/** Delimiters and fillers have no place in a stream with lengths. */
function keepsH264(firstByte: number): boolean {
  const type = h264NalType(firstByte);
  return type !== H264NalType.AUD && type !== H264NalType.FILLER;
}

function keepsH265(firstByte: number): boolean {
  const type = h265NalType(firstByte);
  return type !== H265NalType.AUD && type !== H265NalType.FILLER;
}
