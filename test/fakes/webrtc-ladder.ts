/** Tracks and a playlist for viewers of WebRTC. */
import type { Playlist } from '../../src/core/playlist.ts';
import { MPEG_90K } from '../../src/media/timebase.ts';
import type { AudioTrack, VideoTrack } from '../../src/media/track.ts';

const COMMON = { language: '', characteristics: '', bypass: true, config: null, publicName: '' };

/** A video of 640 by 360 whose bitrate depends on its id. */
export function video(id: number, variantName: string, codec: VideoTrack['codec'] = 'H264'): VideoTrack {
  const size = { width: 640, height: 360, framerateConf: 30 };
  return {
    ...COMMON,
    ...size,
    id,
    type: 'video',
    codec,
    variantName,
    timebase: MPEG_90K,
    bitrateConf: id * 500_000,
    codecString: 'avc1.42c01e',
  };
}

/** The audio of all renditions. */
export const OPUS: AudioTrack = {
  ...COMMON,
  id: 9,
  type: 'audio',
  codec: 'OPUS',
  variantName: 'opus',
  timebase: { num: 1, den: 48_000 },
  bitrateConf: 128_000,
  sampleRate: 48_000,
  channels: 2,
  codecString: 'opus',
};

/** A playlist of the videos `low`, `high` and `other`. */
export const LADDER: Playlist = {
  name: 'for all',
  fileName: 'master',
  options: { webrtcAutoAbr: true, hlsChunklistPathDepth: -1, enableTsPackaging: true, enableSubtitles: true },
  renditions: [
    { name: 'low', videoVariantName: 'low', audioVariantName: 'opus', videoIndexHint: -1, audioIndexHint: -1 },
    { name: 'high', videoVariantName: 'high', audioVariantName: 'opus', videoIndexHint: -1, audioIndexHint: -1 },
    { name: 'other', videoVariantName: 'other', audioVariantName: '', videoIndexHint: -1, audioIndexHint: -1 },
  ],
};
