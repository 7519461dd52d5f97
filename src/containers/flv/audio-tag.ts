/** FLV audio tags: classic (FLV 10.1 annex E.4.2) and enhanced (Enhanced RTMP v2, ExAudioTagHeader). */
import { AudioCodec } from '../../media/codec.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { asBuffer, type ExPacketTypes, parseExTracks, parseModEx, requireBytes } from './ex-header.ts';
import { audioCodecOfFourCc, FlvSoundFormat, fourCcOf } from './fourcc.ts';

const AacPacketType = { SEQUENCE_HEADER: 0, RAW: 1 } as const;
const ExAudioPacketType = {
  SEQUENCE_START: 0,
  CODED_FRAMES: 1,
  SEQUENCE_END: 2,
  MULTICHANNEL_CONFIG: 4,
  MULTITRACK: 5,
  MOD_EX: 7,
} as const;
const EX_TYPES: ExPacketTypes = { multitrack: ExAudioPacketType.MULTITRACK, modEx: ExAudioPacketType.MOD_EX };
/** SoundRate, SoundSize and SoundType of every AAC tag. */
const AAC_SOUND_BITS = 0x0f;

/** One track's part of an audio tag. Bodies are views of the tag. */
export type FlvAudioUnit =
  | { readonly kind: 'config'; readonly trackId: number; readonly codec: AudioCodec; readonly body: Buffer }
  | { readonly kind: 'frame'; readonly trackId: number; readonly codec: AudioCodec; readonly body: Buffer }
  /** Number of channels, for codecs that do not carry it. */
  | { readonly kind: 'channels'; readonly trackId: number; readonly codec: AudioCodec; readonly channels: number }
  | { readonly kind: 'other'; readonly trackId: number }
  /** `codec` is the FourCC or classic number as text. */
  | { readonly kind: 'unsupported'; readonly trackId: number; readonly codec: string };

/** Parses an audio tag; most tags have one unit. Throws `ProtocolError` if it is truncated or malformed. */
export function parseAudioTag(payload: Uint8Array): FlvAudioUnit[] {
  const tag = asBuffer(payload);
  requireBytes(tag, 0, 1);
  const format = tag.readUInt8(0) >> 4;
  return format === FlvSoundFormat.EX_HEADER ? parseEnhanced(tag) : [parseClassic(tag, format)];
}

function parseClassic(tag: Buffer, format: number): FlvAudioUnit {
  if (format === FlvSoundFormat.MP3 || format === FlvSoundFormat.MP3_8K) {
    return { kind: 'frame', trackId: 0, codec: AudioCodec.MP3, body: tag.subarray(1) };
  }
  if (format !== FlvSoundFormat.AAC) return { kind: 'unsupported', trackId: 0, codec: String(format) };
  requireBytes(tag, 0, 2);
  const packetType = tag.readUInt8(1);
  if (packetType > AacPacketType.RAW) throw new ProtocolError('FLV_PACKET_TYPE', `unknown AAC packet type ${packetType}`, 1);
  const kind = packetType === AacPacketType.SEQUENCE_HEADER ? 'config' : 'frame';
  return { kind, trackId: 0, codec: AudioCodec.AAC, body: tag.subarray(2) };
}

function parseEnhanced(tag: Buffer): FlvAudioUnit[] {
  const { packetType, tracks } = parseExTracks(tag, parseModEx(tag, EX_TYPES), EX_TYPES);
  return tracks.map(({ trackId, fourCc, body }) => {
    const codec = audioCodecOfFourCc(fourCc);
    if (codec === null) return { kind: 'unsupported', trackId, codec: fourCc };
    switch (packetType) {
      case ExAudioPacketType.SEQUENCE_START:
        return { kind: 'config', trackId, codec, body };
      case ExAudioPacketType.CODED_FRAMES:
        return { kind: 'frame', trackId, codec, body };
      case ExAudioPacketType.MULTICHANNEL_CONFIG:
        requireBytes(body, 0, 2);
        return { kind: 'channels', trackId, codec, channels: body.readUInt8(1) };
      case ExAudioPacketType.SEQUENCE_END:
        return { kind: 'other', trackId };
      default:
        throw new ProtocolError('FLV_PACKET_TYPE', `unknown enhanced audio packet type ${packetType}`);
    }
  });
}

/** Header of a classic AAC tag or, for the other codecs, of an enhanced one; the body follows it on the wire. */
export function serializeAudioTagHeader(unit: { readonly kind: 'config' | 'frame'; readonly codec: AudioCodec }): Buffer {
  if (unit.codec === AudioCodec.AAC) {
    const packetType = unit.kind === 'config' ? AacPacketType.SEQUENCE_HEADER : AacPacketType.RAW;
    return Buffer.from([(FlvSoundFormat.AAC << 4) | AAC_SOUND_BITS, packetType]);
  }
  const packetType = unit.kind === 'config' ? ExAudioPacketType.SEQUENCE_START : ExAudioPacketType.CODED_FRAMES;
  const fourCc = fourCcOf(unit.codec);
  if (fourCc === null) throw new TypeError(`FLV cannot carry ${unit.codec}`);
  return Buffer.concat([Buffer.from([(FlvSoundFormat.EX_HEADER << 4) | packetType]), Buffer.from(fourCc, 'latin1')]);
}
