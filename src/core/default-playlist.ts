/** The playlist a publisher makes for streams whose output profile declares none. */
import { type AudioTrack, isMediaTrack, type Track, type VideoTrack } from '../media/track.ts';
import type { Playlist, PlaylistRendition } from './playlist.ts';

/** With this hint a rendition takes the first video track of its variant, and as many audio tracks as the publisher supports. */
const FIRST_OR_ALL = -1;

/** The tracks that a publisher can serve. */
export interface DefaultChoice {
  /** Its players can be sent this track. */
  readonly canServe: (track: VideoTrack | AudioTrack) => boolean;
  /** Whether every player supports the track; such tracks come first. Absent: all tracks are supported everywhere. */
  readonly isCommon?: (track: VideoTrack | AudioTrack) => boolean;
  /**
   * Players choose between renditions by codec: each further audio codec becomes a rendition of its own after the first. Absent: false.
   */
  readonly everyAudioCodec?: boolean;
}

/** One rendition of the best first video and audio track, and more if the selection says so; null if there is neither track. */
export function defaultPlaylist(
  tracks: readonly Track[],
  { canServe, isCommon = () => true, everyAudioCodec = false }: DefaultChoice,
  playlist: Omit<Playlist, 'renditions'>,
): Playlist | null {
  const servable = tracks.filter((track): track is VideoTrack | AudioTrack => isMediaTrack(track) && canServe(track));
  const ofType = (type: 'video' | 'audio'): (VideoTrack | AudioTrack)[] => {
    const all = servable.filter((track) => track.type === type);
    return [...all.filter(isCommon), ...all.filter((track) => !isCommon(track))];
  };
  const [video] = ofType('video');
  const [audio, ...others] = ofType('audio');
  if (video === undefined && audio === undefined) return null;
  const renditions = [rendition('default', video, audio)];
  const codecs = new Set(audio === undefined ? [] : [audio.codec]);
  for (const other of everyAudioCodec ? others : []) {
    // The first rendition contains all audio of its variant.
    if (codecs.has(other.codec) || other.variantName === audio?.variantName) continue;
    codecs.add(other.codec);
    renditions.push(rendition(other.codec.toLowerCase(), video, other));
  }
  return { ...playlist, publisherDefault: true, renditions };
}

function rendition(name: string, video: Track | undefined, audio: Track | undefined): PlaylistRendition {
  return {
    name,
    videoVariantName: video?.variantName ?? '',
    audioVariantName: audio?.variantName ?? '',
    videoIndexHint: FIRST_OR_ALL,
    audioIndexHint: FIRST_OR_ALL,
  };
}
