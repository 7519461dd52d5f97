/** FLV video tags: classic (FLV 10.1 annex E.4.3) and enhanced (Enhanced RTMP v2, ExVideoTagHeader). */
import { VideoCodec } from '../../media/codec.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { asBuffer, type ExPacketTypes, parseExTracks, parseModEx, requireBytes } from './ex-header.ts';
import { FlvVideoCodecId, fourCcOf, videoCodecOfFourCc } from './fourcc.ts';

const EX_HEADER_FLAG = 0x80;
const FrameType = { KEY: 1, INTER: 2, GENERATED_KEY: 4, COMMAND: 5 } as const;
const AvcPacketType = { SEQUENCE_HEADER: 0, NALU: 1, END: 2 } as const;
const ExVideoPacketType = {
  SEQUENCE_START: 0,
  CODED_FRAMES: 1,
  SEQUENCE_END: 2,
  CODED_FRAMES_X: 3,
  METADATA: 4,
  MPEG2TS_SEQUENCE_START: 5,
  MULTITRACK: 6,
  MOD_EX: 7,
} as const;
const EX_TYPES: ExPacketTypes = { multitrack: ExVideoPacketType.MULTITRACK, modEx: ExVideoPacketType.MOD_EX };
const COMPOSITION_TIME_LENGTH = 3;
const CLASSIC_HEADER_LENGTH = 5;

/** One track's part of a video tag. Bodies are views of the tag. */
export type FlvVideoUnit =
  | { readonly kind: 'config'; readonly trackId: number; readonly codec: VideoCodec; readonly body: Buffer }
  | {
      readonly kind: 'frame';
      readonly trackId: number;
      readonly codec: VideoCodec;
      readonly keyframe: boolean;
      /** Presentation time minus decoding time, milliseconds; may be negative. */
      readonly compositionTime: number;
      readonly body: Buffer;
    }
  /** End of sequence, seek commands, colour information. */
  | { readonly kind: 'other'; readonly trackId: number }
  /** `codec` is the FourCC or classic number as text. */
  | { readonly kind: 'unsupported'; readonly trackId: number; readonly codec: string };

/** Parses a video tag; most tags have one unit. Throws `ProtocolError` if it is truncated or malformed. */
export function parseVideoTag(payload: Uint8Array): FlvVideoUnit[] {
  const tag = asBuffer(payload);
  requireBytes(tag, 0, 1);
  const first = tag.readUInt8(0);
  return (first & EX_HEADER_FLAG) === 0 ? [parseClassic(tag, first)] : parseEnhanced(tag, first);
}

function parseClassic(tag: Buffer, first: number): FlvVideoUnit {
  const frameType = first >> 4;
  const codecId = first & 0x0f;
  if (frameType === FrameType.COMMAND) return { kind: 'other', trackId: 0 };
  const codec = classicCodec(codecId);
  if (codec === null) return { kind: 'unsupported', trackId: 0, codec: String(codecId) };
  requireBytes(tag, 0, CLASSIC_HEADER_LENGTH);
  const body = tag.subarray(CLASSIC_HEADER_LENGTH);
  switch (tag.readUInt8(1)) {
    case AvcPacketType.SEQUENCE_HEADER:
      return { kind: 'config', trackId: 0, codec, body };
    case AvcPacketType.NALU:
      return { kind: 'frame', trackId: 0, codec, keyframe: isKey(frameType), compositionTime: tag.readIntBE(2, 3), body };
    case AvcPacketType.END:
      return { kind: 'other', trackId: 0 };
    default:
      throw new ProtocolError('FLV_PACKET_TYPE', `unknown packet type ${tag.readUInt8(1)}`, 1);
  }
}

function parseEnhanced(tag: Buffer, first: number): FlvVideoUnit[] {
  const frameType = (first >> 4) & 0x07;
  const head = parseModEx(tag, EX_TYPES);
  if (frameType === FrameType.COMMAND && head.packetType !== ExVideoPacketType.METADATA) return [{ kind: 'other', trackId: 0 }];
  const { packetType, tracks } = parseExTracks(tag, head, EX_TYPES);
  return tracks.map(({ trackId, fourCc, body }) => {
    const codec = videoCodecOfFourCc(fourCc);
    if (codec === null) return { kind: 'unsupported', trackId, codec: fourCc };
    return parseExBody({ trackId, codec, body, packetType, keyframe: isKey(frameType) });
  });
}

function parseExBody(track: { trackId: number; codec: VideoCodec; body: Buffer; packetType: number; keyframe: boolean }): FlvVideoUnit {
  const { trackId, codec, body, packetType, keyframe } = track;
  switch (packetType) {
    case ExVideoPacketType.SEQUENCE_START:
      return { kind: 'config', trackId, codec, body };
    case ExVideoPacketType.CODED_FRAMES: {
      if (!hasCompositionTime(codec)) return { kind: 'frame', trackId, codec, keyframe, compositionTime: 0, body };
      requireBytes(body, 0, COMPOSITION_TIME_LENGTH);
      const compositionTime = body.readIntBE(0, COMPOSITION_TIME_LENGTH);
      return { kind: 'frame', trackId, codec, keyframe, compositionTime, body: body.subarray(COMPOSITION_TIME_LENGTH) };
    }
    case ExVideoPacketType.CODED_FRAMES_X:
      return { kind: 'frame', trackId, codec, keyframe, compositionTime: 0, body };
    case ExVideoPacketType.SEQUENCE_END:
    case ExVideoPacketType.METADATA:
    case ExVideoPacketType.MPEG2TS_SEQUENCE_START:
      return { kind: 'other', trackId };
    default:
      throw new ProtocolError('FLV_PACKET_TYPE', `unknown enhanced video packet type ${packetType}`);
  }
}

/** Header of a classic H.264 tag or, for the other codecs, of an enhanced one; the body follows it on the wire. */
export function serializeVideoTagHeader(unit: {
  readonly kind: 'config' | 'frame';
  readonly codec: VideoCodec;
  readonly keyframe: boolean;
  readonly compositionTime: number;
}): Buffer {
  const frameType = unit.keyframe ? FrameType.KEY : FrameType.INTER;
  if (unit.codec === VideoCodec.H264) {
    const header = Buffer.alloc(CLASSIC_HEADER_LENGTH);
    header.writeUInt8((frameType << 4) | FlvVideoCodecId.AVC, 0);
    header.writeUInt8(unit.kind === 'config' ? AvcPacketType.SEQUENCE_HEADER : AvcPacketType.NALU, 1);
    header.writeIntBE(unit.kind === 'config' ? 0 : unit.compositionTime, 2, 3);
    return header;
  }
  const fourCc = fourCcOf(unit.codec);
  if (fourCc === null) throw new TypeError(`FLV cannot carry ${unit.codec}`);
  const timed = unit.kind === 'frame' && hasCompositionTime(unit.codec) && unit.compositionTime !== 0;
  const header = Buffer.alloc(timed ? 8 : 5);
  header.writeUInt8(EX_HEADER_FLAG | (frameType << 4) | exPacketType(unit, timed), 0);
  header.write(fourCc, 1, 'latin1');
  if (timed) header.writeIntBE(unit.compositionTime, 5, 3);
  return header;
}

/** CodedFramesX is defined only for codecs with composition times. */
function exPacketType(unit: { kind: 'config' | 'frame'; codec: VideoCodec }, timed: boolean): number {
  if (unit.kind === 'config') return ExVideoPacketType.SEQUENCE_START;
  return timed || !hasCompositionTime(unit.codec) ? ExVideoPacketType.CODED_FRAMES : ExVideoPacketType.CODED_FRAMES_X;
}

function classicCodec(codecId: number): VideoCodec | null {
  if (codecId === FlvVideoCodecId.AVC) return VideoCodec.H264;
  return codecId === FlvVideoCodecId.HEVC ? VideoCodec.H265 : null;
}

function hasCompositionTime(codec: VideoCodec): boolean {
  return codec === VideoCodec.H264 || codec === VideoCodec.H265;
}

function isKey(frameType: number): boolean {
  return frameType === FrameType.KEY || frameType === FrameType.GENERATED_KEY;
}
