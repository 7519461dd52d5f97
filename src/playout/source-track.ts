/** Tracks that have gone through a router, or come from an encoder, on their way to another router. */
import type { SourceTrack } from '../core/ingest.ts';
import { AudioCodec, BitstreamFormat, VideoCodec } from '../media/codec.ts';
import type { SubtitleTrack, Track } from '../media/track.ts';

/** Subtitles belong to their application: a stream has those of the application in which it plays. */
export function isOfSource(track: Track): track is Exclude<Track, SubtitleTrack> {
  return track.type !== 'subtitle';
}

/** Turns a track behind a router into a track that can enter another router. */
export function sourceTrackOf(track: Exclude<Track, SubtitleTrack>): SourceTrack {
  const { id, timebase, bitrateConf, language, characteristics } = track;
  const common = { id, timebase, bitrateConf, ...(language !== '' && { language }), ...(characteristics !== '' && { characteristics }) };
  switch (track.type) {
    case 'data':
      return { ...common, type: 'data' };
    case 'audio': {
      const { codec, config, sampleRate, channels } = track;
      const format = codec === AudioCodec.AAC ? BitstreamFormat.AAC_RAW : BitstreamFormat.RAW;
      return { ...common, type: 'audio', codec, format, config, sampleRate, channels };
    }
    case 'video': {
      const { codec, config, width, height, framerateConf } = track;
      return { ...common, type: 'video', codec, format: videoFormat(codec), config, width, height, framerateConf };
    }
  }
}

function videoFormat(codec: VideoCodec): BitstreamFormat {
  if (codec === VideoCodec.H264 || codec === VideoCodec.H265) return BitstreamFormat.LENGTH_PREFIXED;
  return codec === VideoCodec.AV1 ? BitstreamFormat.OBU : BitstreamFormat.RAW;
}
