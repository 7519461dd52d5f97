/** An outbound track as a source of another stream. */
import type { SourceTrack } from '../../core/ingest.ts';
import { AudioCodec, BitstreamFormat, VideoCodec } from '../../media/codec.ts';
import { isImageTrack, isMediaTrack, type MediaTrack, type Track } from '../../media/track.ts';
import type { ChannelSource, MappedTrack } from './channel-definition.ts';

const FORMATS: Readonly<Partial<Record<VideoCodec | AudioCodec, BitstreamFormat>>> = {
  [VideoCodec.H264]: BitstreamFormat.LENGTH_PREFIXED,
  [VideoCodec.H265]: BitstreamFormat.LENGTH_PREFIXED,
  [VideoCodec.AV1]: BitstreamFormat.OBU,
  [AudioCodec.AAC]: BitstreamFormat.AAC_RAW,
};

/** Whether channels can take it: images, data and subtitles stay with their streams. */
export function canBeMapped(track: Track): track is MediaTrack {
  return isMediaTrack(track) && !isImageTrack(track);
}

/** Whether the map of a source names the track. */
export function isWanted(track: Track, { trackMap }: ChannelSource): boolean {
  return canBeMapped(track) && trackMap.some(({ sourceTrackName }) => sourceTrackName === track.variantName);
}

/** `track` under the id and name it has in the channel. Throws nothing. */
export function sourceTrackOf(track: MediaTrack, id: number, { newTrackName, bitrateConf, framerateConf }: MappedTrack): SourceTrack {
  const { timebase, publicName, language, characteristics } = track;
  const base = {
    ...{ id, timebase, publicName, language, characteristics },
    variantName: newTrackName,
    bitrateConf: bitrateConf > 0 ? bitrateConf : track.bitrateConf,
  };
  const { config } = track;
  if (track.type === 'audio') {
    const { codec, sampleRate, channels } = track;
    return { ...base, type: 'audio', codec, format: FORMATS[codec] ?? BitstreamFormat.RAW, config, sampleRate, channels };
  }
  const { codec, width, height } = track;
  const rate = framerateConf > 0 ? framerateConf : track.framerateConf;
  return { ...base, type: 'video', codec, format: FORMATS[codec] ?? BitstreamFormat.RAW, config, framerateConf: rate, width, height };
}
