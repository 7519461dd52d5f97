/** Describes bitstreams for the media router, in one place for all codecs. */
import { AudioCodec, VideoCodec } from '../media/codec.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { aacCodecString, parseAudioSpecificConfig } from './aac/audio-specific-config.ts';
import { type AspectRatio, SQUARE } from './aspect-ratio.ts';
import { av1CodecString, parseAv1c } from './av1/av1c.ts';
import { parseAv1SequenceHeader } from './av1/sequence-header.ts';
import { isAv1Keyframe } from './av1/temporal-unit.ts';
import { h264RecoveryPoint, isH264Keyframe } from './h264/access-unit.ts';
import { avcCodecString, parseAvcc } from './h264/avcc.ts';
import { parseH264Sps } from './h264/sps.ts';
import { isH265Keyframe } from './h265/access-unit.ts';
import { parseHvcc } from './h265/hvcc.ts';
import { hevcCodecString } from './h265/profile-tier-level.ts';
import { parseH265Sps } from './h265/sps.ts';
import { parseMpegAudioHeader } from './mp3/frame-header.ts';
import { LengthPrefixedCursor } from './nal/nal-cursor.ts';
import { OPUS_SAMPLE_RATE, parseOpusHead } from './opus/opus-head.ts';
import { isVp8Keyframe, parseVp8Keyframe } from './vp8/frame-header.ts';
import { isVp9Keyframe, parseVp9Keyframe } from './vp9/frame-header.ts';
import { buildVpcc, parseVpcc, vpCodecString } from './vp9/vpcc.ts';

export {
  buildConfig,
  nalLengthSizeOf,
  type ParameterSets,
  parameterSetsOf,
  parameterSetsOfConfig,
  updateConfig,
  withFourByteLengths,
} from './parameter-sets.ts';

/** Properties of a video bitstream. */
export interface VideoDescription {
  /** Pixels after cropping; 0 if the configuration lacks them (VP9). */
  readonly width: number;
  readonly height: number;
  /** RFC 6381. */
  readonly codecString: string;
  /** Announced frames per second; 0 if unknown. */
  readonly framerate: number;
  /** False if the stream promises that output order is decoding order (no B-frames). */
  readonly hasReordering: boolean;
  readonly sampleAspectRatio: AspectRatio;
}

/** Properties of an audio bitstream. */
export interface AudioDescription {
  /** Hz of the decoder's output. */
  readonly sampleRate: number;
  readonly channels: number;
  /** RFC 6381. */
  readonly codecString: string;
  /** Samples at `sampleRate`: 1024 (2048 with SBR), 960, 1152 …; for Opus those of the usual 20 ms packet. */
  readonly samplesPerFrame: number;
}

const OPUS_USUAL_SAMPLES = 960;

/** Describes a video track by its avcC, hvcC, av1C or vpcC. Throws `ProtocolError` for broken records and codecs without one. */
export function describeVideo(codec: VideoCodec, config: Uint8Array): VideoDescription {
  if (codec === VideoCodec.H264) return describeH264(config);
  if (codec === VideoCodec.H265) return describeH265(config);
  if (codec === VideoCodec.AV1) return describeAv1(config);
  if (codec === VideoCodec.VP9) return plain(0, 0, vpCodecString(parseVpcc(config)));
  throw new ProtocolError('NO_CONFIG', `${codec} has no decoder configuration record`);
}

/**
 * Describes VP8 and VP9 by a frame, because their configuration lacks the frame size. Null if the frame is no keyframe, or the codec is
 * described by its configuration.
 */
export function describeKeyframe(codec: VideoCodec, data: Uint8Array): VideoDescription | null {
  if (codec === VideoCodec.VP8) {
    const keyframe = parseVp8Keyframe(data);
    return keyframe === null ? null : plain(keyframe.width, keyframe.height, 'vp8');
  }
  if (codec !== VideoCodec.VP9) return null;
  const keyframe = parseVp9Keyframe(data);
  return keyframe === null ? null : plain(keyframe.width, keyframe.height, vpCodecString(parseVpcc(buildVpcc(keyframe))));
}

/** Describes an audio track: AAC by its AudioSpecificConfig, Opus by its OpusHead, MP3 by the header of any frame. */
export function describeAudio(codec: AudioCodec, config: Uint8Array): AudioDescription {
  if (codec === AudioCodec.AAC) {
    const aac = parseAudioSpecificConfig(config);
    const samplesPerFrame = Math.round((aac.frameLength * aac.sampleRate) / aac.coreSampleRate);
    return { sampleRate: aac.sampleRate, channels: aac.channels, codecString: aacCodecString(aac), samplesPerFrame };
  }
  if (codec === AudioCodec.OPUS) {
    const { channels } = parseOpusHead(config);
    return { sampleRate: OPUS_SAMPLE_RATE, channels, codecString: 'opus', samplesPerFrame: OPUS_USUAL_SAMPLES };
  }
  const { sampleRate, channels, samplesPerFrame } = parseMpegAudioHeader(config);
  return { sampleRate, channels, codecString: 'mp4a.40.34', samplesPerFrame };
}

/**
 * True if a decoder can start at this packet (H.264/H.265: 4-byte lengths): IDR and open-GOP recovery points, IRAP, AV1/VP9/VP8 keyframes,
 * every still image. Throws `ProtocolError` for broken framing.
 */
export function isKeyframe(codec: VideoCodec, data: Uint8Array): boolean {
  if (codec === VideoCodec.H264) return isH264Keyframe(new LengthPrefixedCursor(data));
  if (codec === VideoCodec.H265) return isH265Keyframe(new LengthPrefixedCursor(data));
  if (codec === VideoCodec.AV1) return isAv1Keyframe(data);
  if (codec === VideoCodec.VP9) return isVp9Keyframe(data);
  if (codec === VideoCodec.VP8) return isVp8Keyframe(data);
  return true;
}

/** Like `isKeyframe`, and also true at the start of a periodic intra refresh: such H.264 streams have no further IDR pictures. */
export function isRandomAccessPoint(codec: VideoCodec, data: Uint8Array): boolean {
  return isKeyframe(codec, data) || (codec === VideoCodec.H264 && h264RecoveryPoint(new LengthPrefixedCursor(data)) !== null);
}

function describeH264(config: Uint8Array): VideoDescription {
  const avcc = parseAvcc(config);
  const { width, height, framerate, hasReordering, sampleAspectRatio } = parseH264Sps(firstSps('AVCC', avcc.sps));
  return { width, height, codecString: avcCodecString(avcc), framerate, hasReordering, sampleAspectRatio };
}

function describeH265(config: Uint8Array): VideoDescription {
  const hvcc = parseHvcc(config);
  const sps = parseH265Sps(firstSps('HVCC', hvcc.sps));
  const { width, height, hasReordering, sampleAspectRatio } = sps;
  const framerate = sps.framerate > 0 ? sps.framerate : hvcc.avgFrameRate;
  return { width, height, codecString: hevcCodecString(hvcc.profile), framerate, hasReordering, sampleAspectRatio };
}

function describeAv1(config: Uint8Array): VideoDescription {
  const av1c = parseAv1c(config);
  if (av1c.sequenceHeader === null) return plain(0, 0, av1CodecString(av1c));
  const sequence = parseAv1SequenceHeader(av1c.sequenceHeader);
  return { ...plain(sequence.width, sequence.height, av1CodecString(sequence)), framerate: sequence.framerate };
}

function firstSps(code: string, units: readonly Uint8Array[]): Uint8Array {
  const [sps] = units;
  if (sps === undefined) throw new ProtocolError(code, 'the record has no SPS');
  return sps;
}

function plain(width: number, height: number, codecString: string): VideoDescription {
  return { width, height, codecString, framerate: 0, hasReordering: false, sampleAspectRatio: SQUARE };
}
