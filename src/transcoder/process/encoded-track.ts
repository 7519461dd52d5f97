/** Converts an encoder's stream parameters to the track that the server announces. */
import { buildConfig, describeAudio, describeVideo, parameterSetsOf } from '../../codecs/describe.ts';
import { annexbToLengthPrefixed } from '../../codecs/nal/convert.ts';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import type { TrackMessage } from '../messages.ts';

/** Header of the OBU that separates temporal units in a byte stream; packets are separate anyway. */
const TEMPORAL_DELIMITER = 0x12;

const STILL_STRINGS: Readonly<Partial<Record<VideoCodec, string>>> = {
  [VideoCodec.VP8]: 'vp8',
  [VideoCodec.JPEG]: 'jpeg',
  [VideoCodec.PNG]: 'png',
  [VideoCodec.WEBP]: 'webp',
};

/** Describes encoded frames. Throws ProtocolError when the encoder's parameter sets cannot be read. */
export function videoTrackMessage(options: {
  codec: VideoCodec;
  extraData: Uint8Array | null;
  width: number;
  height: number;
  framerate: number;
  bitrate: number;
}): TrackMessage {
  const { codec, extraData, width, height, framerate, bitrate } = options;
  const common = { type: 'video', codec, width, height, framerate, bitrate } as const;
  const still = STILL_STRINGS[codec];
  if (still !== undefined || extraData === null) return { ...common, config: null, codecString: still ?? '' };
  const config = videoConfig(codec, extraData);
  return { ...common, config: Buffer.from(config).toString('base64'), codecString: describeVideo(codec, config).codecString };
}

function videoConfig(codec: VideoCodec, extraData: Uint8Array): Uint8Array {
  const unit = codec === VideoCodec.H264 || codec === VideoCodec.H265 ? annexbToLengthPrefixed(extraData) : extraData;
  return buildConfig(codec, parameterSetsOf(codec, unit) ?? { vps: [], sps: [], pps: [] });
}

/** Describes encoded audio. Throws ProtocolError when the encoder's configuration cannot be read. */
export function audioTrackMessage(options: {
  codec: AudioCodec;
  extraData: Uint8Array | null;
  sampleRate: number;
  channels: number;
  bitrate: number;
}): TrackMessage {
  const { codec, extraData, sampleRate, channels, bitrate } = options;
  const common = { type: 'audio', codec, sampleRate, channels, bitrate } as const;
  if (extraData === null || codec === AudioCodec.MP3) return { ...common, config: null, codecString: 'mp4a.40.34' };
  return { ...common, config: Buffer.from(extraData).toString('base64'), codecString: describeAudio(codec, extraData).codecString };
}

/** An encoded frame in the router's layout; always a copy. */
export function routedAccessUnit(codec: VideoCodec, data: Uint8Array): Uint8Array {
  if (codec === VideoCodec.H264 || codec === VideoCodec.H265) return annexbToLengthPrefixed(data);
  if (codec === VideoCodec.AV1 && data[0] === TEMPORAL_DELIMITER && data[1] === 0) return data.slice(2);
  return data.slice();
}
