/** The tracks for a viewer of a playlist: the tracks of the first rendition that a transport stream can carry. */
import { canCarry } from '../../containers/mpegts/stream-type.ts';
import type { Playlist, PlaylistRendition } from '../../core/playlist.ts';
import type { Track } from '../../media/track.ts';

/** The tracks of the first rendition that can be carried, with all data tracks; null when there is none. */
export function renditionTracks(playlist: Playlist, tracks: readonly Track[]): readonly Track[] | null {
  for (const rendition of playlist.renditions) {
    const chosen = tracksOf(rendition, tracks).filter(canCarry);
    if (chosen.length > 0) return [...chosen, ...tracks.filter((track) => track.type === 'data')];
  }
  return null;
}

function tracksOf(rendition: PlaylistRendition, tracks: readonly Track[]): readonly Track[] {
  const { videoVariantName, audioVariantName, videoIndexHint, audioIndexHint } = rendition;
  const named = (type: Track['type'], variant: string): Track[] =>
    variant === '' ? [] : tracks.filter((track) => track.type === type && track.variantName === variant);
  const videos = named('video', videoVariantName);
  const audios = named('audio', audioVariantName);
  return [
    ...(videoIndexHint < 0 ? videos : videos.slice(videoIndexHint, videoIndexHint + 1)),
    ...(audioIndexHint < 0 ? audios : audios.slice(audioIndexHint, audioIndexHint + 1)),
  ];
}
