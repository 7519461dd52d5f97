import { buildConfig, isRandomAccessPoint, parameterSetsOf, parameterSetsOfConfig, updateConfig } from '../codecs/describe.ts';
import { parseAvcc } from '../codecs/h264/avcc.ts';
import { parseHvcc } from '../codecs/h265/hvcc.ts';
import { annexbToLengthPrefixed, toFourByteLengths, withValidLengths } from '../codecs/nal/convert.ts';
import { BitstreamFormat, VideoCodec } from '../media/codec.ts';
import type { SourceVideoTrack } from './ingest.ts';

/** Reads the access units of one source track, whatever their layout on the wire. */
export interface AccessUnitReader {
  /** The data in the layout that the router passes on; the same bytes if they have it already. Throws ProtocolError for broken framing. */
  read(data: Uint8Array): Uint8Array;
  /** `data`, in the router's layout, is a frame that a decoder can start with. */
  isKeyframe(data: Uint8Array): boolean;
  /** The configuration after the parameter sets inside `data`; null when it has none or they are incomplete. */
  configOf(data: Uint8Array, current: Uint8Array | null): Uint8Array | null;
}

/** The reader for the declared codec and layout. Throws `ProtocolError` for a broken configuration record. */
export function accessUnitReader(source: SourceVideoTrack): AccessUnitReader {
  const { codec } = source;
  return {
    read: layoutReader(source),
    isKeyframe: (data) => isRandomAccessPoint(codec, data),
    configOf: (data, current) => {
      const sets = parameterSetsOf(codec, data);
      return sets === null ? null : updateConfig(codec, current, sets);
    },
  };
}

/** The configuration of the source for the router's layout, i.e. with 4-byte lengths. Throws ProtocolError for a broken record. */
export function routedConfig({ codec, config }: SourceVideoTrack): Uint8Array | null {
  if (config === null || lengthSizeOf(codec, config) === 4) return config;
  return buildConfig(codec, parameterSetsOfConfig(codec, config));
}

function layoutReader({ codec, format, config }: SourceVideoTrack): (data: Uint8Array) => Uint8Array {
  if (format === BitstreamFormat.ANNEXB) return (data) => annexbToLengthPrefixed(data);
  if (format !== BitstreamFormat.LENGTH_PREFIXED || config === null) return (data) => data;
  const lengthSize = lengthSizeOf(codec, config);
  // A single broken frame would stop the decoders of all viewers.
  return lengthSize === 4 ? withValidLengths : (data) => toFourByteLengths(data, lengthSize);
}

function lengthSizeOf(codec: VideoCodec, config: Uint8Array): 1 | 2 | 4 {
  if (codec === VideoCodec.H264) return parseAvcc(config).lengthSize;
  return codec === VideoCodec.H265 ? parseHvcc(config).lengthSize : 4;
}
