import type { OutputProfileConfig } from '../config/index.ts';

/** The output profile of streams that pass untouched (`PassthroughOutputProfile`). Tracks that have names keep them. */
export const PASSTHROUGH_PROFILE: OutputProfileConfig = {
  name: '',
  outputStreamName: '${OriginStreamName}',
  encodes: {
    videos: [
      {
        name: 'video_0',
        bypass: true,
        width: 0,
        height: 0,
        framerate: 0,
        skipFrames: -1,
        keyFrameInterval: 0,
        keyFrameIntervalType: 'frame',
        bFrames: 0,
        threadCount: -1,
        lookahead: -1,
      },
    ],
    audios: [{ name: 'audio_0', bypass: true, samplerate: 0, channel: 0 }],
    images: [],
  },
  playlists: [],
};
