/** The meaning of a section of a session description: codec, depacketizer, and parameters. */

import { describeAudio, describeVideo } from '../../codecs/describe.ts';
import { buildOpusHead, OPUS_SAMPLE_RATE } from '../../codecs/opus/opus-head.ts';
import { buildConfig } from '../../codecs/parameter-sets.ts';
import type { SourceTrack } from '../../core/ingest.ts';
import { AudioCodec, BitstreamFormat, VideoCodec } from '../../media/codec.ts';
import { MPEG_90K } from '../../media/timebase.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { type Depacketizer, FrameDepacketizer } from '../../wire/rtp/depacketizer.ts';
import { Mpeg4Depacketizer } from '../../wire/rtp/mpeg4-depacketizer.ts';
import { NalDepacketizer } from '../../wire/rtp/nal-depacketizer.ts';
import { Vp8Depacketizer } from '../../wire/rtp/vp8-depacketizer.ts';
import type { MediaDescription } from '../../wire/rtsp/rtsp-description.ts';

/** A section that can be used. */
export interface MediaFormat {
  readonly codec: VideoCodec | AudioCodec;
  readonly clockRate: number;
  /** Rebuilt for every session. */
  readonly depacketizer: Depacketizer;
  /** Decoder configuration of the description; null when it comes in-band or there is none. */
  readonly config: Uint8Array | null;
  /** True when packets cannot be announced before parameter sets came in-band. */
  readonly needsConfig: boolean;
}

const VIDEO_CLOCK = 90_000;
const DEFAULT_AAC_FRAME = 1024;

/** The format of a media section; null if its codec is not supported. Throws `ProtocolError` if it is invalid. */
export function mediaFormat(media: MediaDescription): MediaFormat | null {
  const clockRate = media.clockRate || VIDEO_CLOCK;
  switch (`${media.type}/${media.encoding}`) {
    case 'video/h264':
      return nalFormat(VideoCodec.H264, clockRate, h264Sets(media));
    case 'video/h265':
      return nalFormat(VideoCodec.H265, clockRate, h265Sets(media));
    case 'video/vp8':
      return { codec: VideoCodec.VP8, clockRate, depacketizer: new Vp8Depacketizer(), config: null, needsConfig: false };
    case 'audio/opus': {
      const config = buildOpusHead({ channels: media.parameters.get('sprop-stereo') === '0' ? 1 : 2 });
      return { codec: AudioCodec.OPUS, clockRate: OPUS_SAMPLE_RATE, depacketizer: new FrameDepacketizer(), config, needsConfig: false };
    }
    case 'audio/pcmu':
      return g711Format(AudioCodec.PCMU, media);
    case 'audio/pcma':
      return g711Format(AudioCodec.PCMA, media);
    case 'audio/mpeg4-generic':
      return aacFormat(media);
    default:
      return null;
  }
}

/** The track for the core; `config` may have come in-band. Throws `ProtocolError` if it is invalid. */
export function rtspTrack(id: number, media: MediaDescription, { codec }: MediaFormat, config: Uint8Array | null): SourceTrack {
  const base = { id, timebase: MPEG_90K, bitrateConf: media.bandwidth, config };
  if (isAudio(codec)) {
    const described = config === null ? null : describeAudio(codec, config);
    return {
      ...base,
      type: 'audio',
      codec,
      format: codec === AudioCodec.AAC ? BitstreamFormat.AAC_RAW : BitstreamFormat.RAW,
      sampleRate: described?.sampleRate ?? media.clockRate,
      channels: described?.channels ?? media.channels,
    };
  }
  const described = config === null ? null : describeVideo(codec, config);
  return {
    ...base,
    type: 'video',
    codec,
    format: codec === VideoCodec.VP8 ? BitstreamFormat.RAW : BitstreamFormat.LENGTH_PREFIXED,
    framerateConf: media.framerate,
    width: described?.width ?? 0,
    height: described?.height ?? 0,
  };
}

function isAudio(codec: VideoCodec | AudioCodec): codec is AudioCodec {
  return (Object.values(AudioCodec) as readonly string[]).includes(codec);
}

/** Null without a usable clock rate: it is the sample rate. */
function g711Format(codec: AudioCodec, { clockRate }: MediaDescription): MediaFormat | null {
  if (clockRate === 0) return null;
  return { codec, clockRate, depacketizer: new FrameDepacketizer(), config: null, needsConfig: false };
}

function nalFormat(codec: typeof VideoCodec.H264 | typeof VideoCodec.H265, clockRate: number, config: Uint8Array | null): MediaFormat {
  return { codec, clockRate, depacketizer: new NalDepacketizer(codec), config, needsConfig: true };
}

/** Sets in the description are optional: broken sets are skipped, because they come in-band as well. */
function configOf(codec: VideoCodec, sets: { vps: Uint8Array[]; sps: Uint8Array[]; pps: Uint8Array[] }): Uint8Array | null {
  try {
    const config = buildConfig(codec, sets);
    describeVideo(codec, config);
    return config;
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}

function h264Sets({ parameters }: MediaDescription): Uint8Array | null {
  const units = base64List(parameters.get('sprop-parameter-sets'));
  const ofType = (type: number): Uint8Array[] => units.filter((unit) => ((unit[0] ?? 0) & 0x1f) === type);
  return configOf(VideoCodec.H264, { vps: [], sps: ofType(7), pps: ofType(8) });
}

function h265Sets({ parameters }: MediaDescription): Uint8Array | null {
  const list = (name: string): Uint8Array[] => base64List(parameters.get(`sprop-${name}`));
  return configOf(VideoCodec.H265, { vps: list('vps'), sps: list('sps'), pps: list('pps') });
}

function base64List(text: string | undefined): Uint8Array[] {
  return (text ?? '')
    .split(',')
    .map((item) => new Uint8Array(Buffer.from(item, 'base64')))
    .filter((unit) => unit.length > 0);
}

/** RFC 3640 §4.1: `config` is the AudioSpecificConfig in hexadecimal. */
function aacFormat(media: MediaDescription): MediaFormat | null {
  const text = media.parameters.get('config') ?? '';
  if (!/^([0-9a-f]{2}){2,}$/i.test(text)) return null;
  const config = new Uint8Array(Buffer.from(text, 'hex'));
  const described = describeAudio(AudioCodec.AAC, config);
  const clockRate = media.clockRate || described.sampleRate;
  const bits = (name: string, usual: number): number => {
    const value = Number(media.parameters.get(name) || usual);
    if (!Number.isInteger(value) || value < 0 || value > 32)
      throw new ProtocolError('SDP', `${name} of ${media.parameters.get(name)} bits`);
    return value;
  };
  const sizeLength = bits('sizelength', 13);
  if (sizeLength === 0) return null;
  const depacketizer = new Mpeg4Depacketizer({
    sizeLength,
    indexLength: bits('indexlength', 3),
    indexDeltaLength: bits('indexdeltalength', 3),
    frameTicks: Math.round(((described.samplesPerFrame || DEFAULT_AAC_FRAME) * clockRate) / described.sampleRate),
  });
  return { codec: AudioCodec.AAC, clockRate, depacketizer, config, needsConfig: false };
}
