/** Turns outbound tracks into tracks of a channel. */
import type { SourceTrack } from '../../core/ingest.ts';
import { isImageTrack, isMediaTrack, type MediaTrack, type Track } from '../../media/track.ts';
import { sourceTrackOf } from '../../playout/source-track.ts';
import type { ChannelSource, MappedTrack } from './channel-definition.ts';

/** Whether channels can take it: images, data and subtitles stay with their streams. */
export function canBeMapped(track: Track): track is MediaTrack {
  return isMediaTrack(track) && !isImageTrack(track);
}

/** Whether the map of a source names the track. */
export function isWanted(track: Track, { trackMap }: ChannelSource): boolean {
  return canBeMapped(track) && trackMap.some(({ sourceTrackName }) => sourceTrackName === track.variantName);
}

/** `track` under the id and name it has in the channel. Throws nothing. */
export function mappedTrackOf(track: MediaTrack, id: number, { newTrackName, bitrateConf, framerateConf }: MappedTrack): SourceTrack {
  const source = sourceTrackOf(track);
  const { publicName } = track;
  const named = { id, publicName, variantName: newTrackName, bitrateConf: bitrateConf > 0 ? bitrateConf : track.bitrateConf };
  if (source.type !== 'video') return { ...source, ...named };
  return { ...source, ...named, framerateConf: framerateConf > 0 ? framerateConf : source.framerateConf };
}
