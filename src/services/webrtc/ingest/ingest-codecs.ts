/** The codecs that publishers may send, by their names in session descriptions. */
import { describeVideo } from '../../../codecs/describe.ts';
import { buildOpusHead, OPUS_SAMPLE_RATE } from '../../../codecs/opus/opus-head.ts';
import type { SourceAudioTrack, SourceVideoTrack } from '../../../core/ingest.ts';
import { AudioCodec, BitstreamFormat, VideoCodec } from '../../../media/codec.ts';
import { MPEG_90K } from '../../../media/timebase.ts';
import { Av1Depacketizer } from '../../../wire/rtp/av1-depacketizer.ts';
import { type Depacketizer, FrameDepacketizer } from '../../../wire/rtp/depacketizer.ts';
import { NalDepacketizer } from '../../../wire/rtp/nal-depacketizer.ts';
import { Vp8Depacketizer } from '../../../wire/rtp/vp8-depacketizer.ts';
import type { VideoCapability } from './oven-capabilities.ts';

/** WebRTC carries Opus as stereo; a decoder makes two channels of a mono packet. */
const OPUS_CHANNELS = 2;

/** Codecs that publishers may send, audio included. */
export type IngestCodec = IngestVideoCodec | typeof AudioCodec.OPUS;
/** The video codecs among them. */
export type IngestVideoCodec = typeof VideoCodec.H264 | typeof VideoCodec.H265 | typeof VideoCodec.VP8 | typeof VideoCodec.AV1;

const CODECS: readonly string[] = [VideoCodec.H264, VideoCodec.H265, VideoCodec.VP8, VideoCodec.AV1, AudioCodec.OPUS];

const FORMATS: Readonly<Record<IngestVideoCodec, BitstreamFormat>> = {
  [VideoCodec.H264]: BitstreamFormat.LENGTH_PREFIXED,
  [VideoCodec.H265]: BitstreamFormat.LENGTH_PREFIXED,
  [VideoCodec.VP8]: BitstreamFormat.RAW,
  [VideoCodec.AV1]: BitstreamFormat.OBU,
};

/** True for `a=rtpmap` encodings that can be received; upper case. */
export function isIngestCodec(encoding: string): encoding is IngestCodec {
  return CODECS.includes(encoding);
}

/** Narrows the codec: Opus is the only audio codec. */
export function isAudioCodec(codec: IngestCodec): codec is typeof AudioCodec.OPUS {
  return codec === AudioCodec.OPUS;
}

/** Ticks of RTP timestamps per second. */
export function ingestClockRate(codec: IngestCodec): number {
  return isAudioCodec(codec) ? OPUS_SAMPLE_RATE : MPEG_90K.den;
}

/** A fresh depacketizer, for one source: RFC 6184, RFC 7798, RFC 7741, the AV1 RTP payload format, or frames as they are (Opus). */
export function createDepacketizer(codec: IngestCodec): Depacketizer {
  switch (codec) {
    case VideoCodec.H264:
    case VideoCodec.H265:
      return new NalDepacketizer(codec);
    case VideoCodec.VP8:
      return new Vp8Depacketizer();
    case VideoCodec.AV1:
      return new Av1Depacketizer();
    default:
      return new FrameDepacketizer();
  }
}

/** The core's video track. `size`: of the last keyframe, if no configuration has it. `announced`: size announced by the publisher. */
export function videoTrack(
  id: number,
  {
    codec,
    config,
    size,
    announced,
  }: {
    readonly codec: IngestVideoCodec;
    readonly config: Uint8Array | null;
    readonly size: { readonly width: number; readonly height: number };
    readonly announced?: VideoCapability | undefined;
  },
): SourceVideoTrack {
  const { width, height } = config === null ? size : describeVideo(codec, config);
  const isSized = announced !== undefined && announced.width > 0 && announced.height > 0;
  return {
    id,
    type: 'video',
    codec,
    format: FORMATS[codec],
    config,
    width,
    height,
    ...(isSized && { fullSize: { width: announced.width, height: announced.height } }),
    timebase: MPEG_90K,
    bitrateConf: 0,
    framerateConf: announced?.framerate ?? 0,
  };
}

/** The audio track for the core, which is always the same: 48 kHz, stereo. */
export function opusTrack(id: number): SourceAudioTrack {
  return {
    id,
    type: 'audio',
    codec: AudioCodec.OPUS,
    format: BitstreamFormat.RAW,
    config: buildOpusHead({ channels: OPUS_CHANNELS }),
    sampleRate: OPUS_SAMPLE_RATE,
    channels: OPUS_CHANNELS,
    timebase: { num: 1, den: OPUS_SAMPLE_RATE },
    bitrateConf: 0,
  };
}
