/** Which tracks LL-HLS carries. */
import { hasSampleEntry } from '../../../../containers/isobmff/sample-entry.ts';
import type { AudioTrack, Track, VideoTrack } from '../../../../media/track.ts';

/** The track can be packaged: its codec has a sample entry and its configuration is known. */
export function isServableInFmp4(track: Track): track is VideoTrack | AudioTrack {
  return track.type !== 'data' && hasSampleEntry(track);
}
