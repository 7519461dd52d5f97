import { type AudioCodec, VideoCodec } from './codec.ts';
import type { Timebase } from './timebase.ts';

interface TrackBase {
  /** Unique within its stream. */
  readonly id: number;
  /** Label for people; default `Video_<id>` / `Audio_<id>` / `Data_<id>`. */
  readonly publicName: string;
  /** Name of the encode that made the track; empty for tracks of an inbound stream. */
  readonly variantName: string;
  readonly timebase: Timebase;
  /** Bits per second announced by the source or set by the encode; 0 if unknown. */
  readonly bitrateConf: number;
  /** RFC 5646 language; empty if unknown. */
  readonly language: string;
  /** Value of HLS CHARACTERISTICS; empty for none. */
  readonly characteristics: string;
  /** True on an outbound track that is passed on without transcoding. */
  readonly bypass: boolean;
}

/** Frames, moving or still. A changed parameter makes a new object. */
export interface VideoTrack extends TrackBase {
  readonly type: 'video';
  readonly codec: VideoCodec;
  /** Size of the coded frame after cropping, pixels; 0 while unknown. */
  readonly width: number;
  readonly height: number;
  /** Frames per second announced by the source; 0 if unknown. */
  readonly framerateConf: number;
  /** Configured number of frames between keyframes; absent if not configured. */
  readonly keyFrameIntervalConf?: number;
  /** Decoder configuration record: avcC, hvcC, av1C or vpcC payload; null for codecs without one. */
  readonly config: Uint8Array | null;
  /** RFC 6381 codecs string, e.g. `avc1.64001f`. */
  readonly codecString: string;
}

/** Audio. A changed parameter makes a new object. */
export interface AudioTrack extends TrackBase {
  readonly type: 'audio';
  readonly codec: AudioCodec;
  /** Hz. */
  readonly sampleRate: number;
  readonly channels: number;
  /** AAC: AudioSpecificConfig. Opus: OpusHead packet of RFC 7845 §5.1 (with magic). Null otherwise. */
  readonly config: Uint8Array | null;
  /** RFC 6381 codecs string, e.g. `mp4a.40.2`. */
  readonly codecString: string;
}

/** Timed metadata: ID3, cues, AMF. Every inbound stream has such a track, so that events can be injected. */
export interface DataTrack extends TrackBase {
  readonly type: 'data';
}

/**
 * Cues of one language (`MediaOptions/Subtitles`). The track is not part of the source's media: each packet is one cue
 * (`media/timed-event.ts`).
 */
export interface SubtitleTrack extends TrackBase {
  readonly type: 'subtitle';
  /** Shown unless the viewer chooses otherwise. */
  readonly isDefault: boolean;
  /** Players may choose it on their own. */
  readonly autoSelect: boolean;
  /** Should be shown always. */
  readonly forced: boolean;
}

/** A track of frames. */
export type MediaTrack = VideoTrack | AudioTrack;

/**
 * One elementary stream as it is now. Immutable: when parameters change mid-stream, packets carry a
 * new object with the same `id`, so a consumer sees the change by identity (`packet.track !== last`).
 */
export type Track = MediaTrack | DataTrack | SubtitleTrack;

/** Whether `track` consists of frames. */
export function isMediaTrack(track: Track): track is MediaTrack {
  return track.type === 'video' || track.type === 'audio';
}

const STILL_CODECS: readonly VideoCodec[] = [VideoCodec.JPEG, VideoCodec.PNG, VideoCodec.WEBP];

/** Whether `track` consists of still frames, for thumbnails. Players are not offered it as video. */
export function isImageTrack(track: Track): track is VideoTrack {
  return track.type === 'video' && STILL_CODECS.includes(track.codec);
}

/** Whether `track` is video for players. */
export function isVideoTrack(track: Track): track is VideoTrack {
  return track.type === 'video' && !STILL_CODECS.includes(track.codec);
}
