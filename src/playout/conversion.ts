/** Which tracks of an item are brought into the codecs of its channel, and how. */
import type { EncodeAudioConfig, EncodeVideoConfig } from '../config/index.ts';
import type { SourceAudioTrack, SourceTrack, SourceVideoTrack } from '../core/ingest.ts';
import type { EncodeRequest } from '../core/transcoding.ts';
import { AudioCodec, VideoCodec } from '../media/codec.ts';

/** Codecs of channels; other codecs are converted from the first item on. */
const CHANNEL_VIDEO: readonly VideoCodec[] = [VideoCodec.H264, VideoCodec.H265];
const CHANNEL_AUDIO: readonly AudioCodec[] = [AudioCodec.AAC, AudioCodec.OPUS, AudioCodec.MP3];
/** Bits of each pixel and frame that pass for good with the fastest encoders. */
const BITS_PER_PIXEL = 0.12;
const USUAL_FRAMERATE = 30;
const USUAL_PIXELS = 1280 * 720;
const MIN_BITRATE = 500_000;
const MAX_BITRATE = 20_000_000;
const AUDIO_BITRATE = 160_000;
/** ms. */
const KEYFRAME_INTERVAL = 2000;

/** A conversion of one track: `sourceId` is that of the item. */
export type Conversion = Extract<EncodeRequest, { type: 'video' | 'audio' }>;

/** How `track` is converted to pass as `present`, which the channel has announced; null where it has announced nothing yet. Null: it passes. */
export function conversionOf(track: SourceTrack, present: SourceTrack | null): Conversion | null {
  if (track.type === 'data') return null;
  return track.type === 'video' ? videoConversion(track, present) : audioConversion(track, present);
}

function videoConversion(track: SourceVideoTrack, present: SourceTrack | null): Conversion | null {
  const fallback = CHANNEL_VIDEO.includes(track.codec) ? track.codec : VideoCodec.H264;
  const codec = present?.type === 'video' ? present.codec : fallback;
  if (codec === track.codec) return null;
  const encode: EncodeVideoConfig = {
    ...{
      name: `video_${track.id}`,
      bypass: false,
      codec: codec.toLowerCase(),
      bitrate: bitrateOf(track),
      width: 0,
      height: 0,
      framerate: 0,
    },
    ...{ skipFrames: -1, keyFrameInterval: KEYFRAME_INTERVAL, keyFrameIntervalType: 'time', bFrames: 0, threadCount: -1, lookahead: -1 },
  };
  return { id: track.id, sourceId: track.id, type: 'video', encode };
}

function audioConversion(track: SourceAudioTrack, present: SourceTrack | null): Conversion | null {
  const fallback = CHANNEL_AUDIO.includes(track.codec) ? track.codec : AudioCodec.AAC;
  const codec = present?.type === 'audio' ? present.codec : fallback;
  if (codec === track.codec) return null;
  const { sampleRate: samplerate = 0, channels: channel = 0 } = present?.type === 'audio' ? present : {};
  const encode: EncodeAudioConfig = {
    ...{ name: `audio_${track.id}`, bypass: false, codec: codec.toLowerCase(), bitrate: AUDIO_BITRATE, samplerate, channel },
  };
  return { id: track.id, sourceId: track.id, type: 'audio', encode };
}

function bitrateOf({ width, height, framerateConf, bitrateConf }: SourceVideoTrack): number {
  const pixels = width * height || USUAL_PIXELS;
  const wanted = bitrateConf || pixels * (framerateConf || USUAL_FRAMERATE) * BITS_PER_PIXEL;
  return Math.round(Math.min(MAX_BITRATE, Math.max(MIN_BITRATE, wanted)));
}
