/** The playlist a publisher makes for streams whose output profile declares none. */
import type { AudioTrack, Track, VideoTrack } from '../media/track.ts';
import type { Playlist } from './playlist.ts';

/** With this hint a rendition takes the first video track of its variant, and whatever the publisher takes of its audio tracks. */
const FIRST_OR_ALL = -1;

/** One rendition of the first video and the first audio track that `canServe`; null when there is neither. */
export function defaultPlaylist(
  tracks: readonly Track[],
  canServe: (track: VideoTrack | AudioTrack) => boolean,
  playlist: Omit<Playlist, 'renditions'>,
): Playlist | null {
  const variantOf = (type: 'video' | 'audio'): string | undefined =>
    tracks.find((track): track is VideoTrack | AudioTrack => track.type === type && canServe(track))?.variantName;
  const [videoVariantName, audioVariantName] = [variantOf('video'), variantOf('audio')];
  if (videoVariantName === undefined && audioVariantName === undefined) return null;
  return {
    ...playlist,
    publisherDefault: true,
    renditions: [
      {
        name: 'default',
        videoVariantName: videoVariantName ?? '',
        audioVariantName: audioVariantName ?? '',
        videoIndexHint: FIRST_OR_ALL,
        audioIndexHint: FIRST_OR_ALL,
      },
    ],
  };
}
