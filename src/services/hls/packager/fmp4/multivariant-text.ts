/** Renders multivariant playlists (rfc8216bis §4.4.6) from playlists, tracks and measured figures. */

import type { Playlist, PlaylistRendition } from '../../../../core/playlist.ts';
import { SUBTITLE_VARIANT } from '../../../../core/subtitle-injector.ts';
import type { AudioTrack, SubtitleTrack, Track, VideoTrack } from '../../../../media/track.ts';
import { serializeAudioRendition, serializeVariant } from '../../../../playlist/multivariant-tags.ts';
import { ResourceNames } from '../../wire/fmp4/resource-name.ts';
import { type MultivariantText, TAIL_MARK } from '../../wire/fmp4/update.ts';
import { CaptionGroups } from '../caption-watch.ts';
import { subtitleRendition } from '../subtitle-rendition.ts';
import { isServableInFmp4 } from './track-packager.ts';

const VERSION = 6;
const VERSION_WITH_SERVICES = 7;
const UNKNOWN_BANDWIDTH = 1_000_000;
const UNKNOWN_FRAME_RATE = 30;
const UNKNOWN_CHANNELS = 2;

/** Figures for a text, read while it is rendered. */
export interface MultivariantSource {
  readonly app: string;
  readonly stream: string;
  readonly runMark: string;
  readonly tracks: readonly Track[];
  /** Every segment so far begins with a keyframe. */
  readonly independentSegments: boolean;
  /** Bits per second of a track; 0 when unknown. */
  bandwidth(track: Track): number;
  /** Channels of captions in a track, by their INSTREAM-ID. */
  captions(track: VideoTrack): readonly string[];
  /** Measured frames per second; 0 when unknown. */
  frameRate(track: VideoTrack): number;
}

interface ResolvedRendition {
  readonly video: VideoTrack | null;
  /** All audio tracks of the group; [] when the rendition has none. */
  readonly audio: readonly AudioTrack[];
  readonly groupId: string;
}

/** The text of `playlist`, or null when none of its renditions can be served. */
export function renderMultivariant(playlist: Playlist, source: MultivariantSource): MultivariantText | null {
  const renditions: ResolvedRendition[] = [];
  for (const rendition of playlist.renditions) {
    const resolved = resolve(rendition, source.tracks);
    if (resolved !== null) renditions.push(resolved);
  }
  if (renditions.length === 0) return null;
  const prefix = uriPrefix(playlist.options.hlsChunklistPathDepth, source);
  const subtitles = playlist.options.enableSubtitles ? source.tracks.filter((track) => track.type === 'subtitle') : [];
  const uri = (track: VideoTrack | AudioTrack | SubtitleTrack): string =>
    prefix + new ResourceNames(track, source.runMark).chunklist + TAIL_MARK;

  const captions = new CaptionGroups();
  const subtitleGroup = subtitles.length > 0 ? SUBTITLE_VARIANT : null;
  const variants = renditions.map((rendition) => variant(rendition, source, { uri, subtitleGroup, captions }));
  let text = `#EXTM3U\n#EXT-X-VERSION:${captions.hasServices ? VERSION_WITH_SERVICES : VERSION}\n`;
  if (source.independentSegments) text += '#EXT-X-INDEPENDENT-SEGMENTS\n';
  const groups = new Map<string, readonly AudioTrack[]>();
  for (const rendition of renditions)
    if (rendition.video !== null && rendition.audio.length > 0) groups.set(rendition.groupId, rendition.audio);
  for (const [groupId, tracks] of groups) text += audioGroup(groupId, tracks, uri);
  for (const track of subtitles) text += subtitleRendition(track, uri(track));
  text += captions.text + variants.join('');
  return { fileName: playlist.fileName, text };
}

/** Null if the rendition's video or audio exists only in codecs that cannot be served, or if it has no track. */
function resolve(rendition: PlaylistRendition, tracks: readonly Track[]): ResolvedRendition | null {
  const videos = pick(tracks, 'video', rendition.videoVariantName, rendition.videoIndexHint);
  const audios = pick(tracks, 'audio', rendition.audioVariantName, rendition.audioIndexHint);
  const video = videos.find((track) => isServableInFmp4(track)) ?? null;
  const audio = audios.filter((track) => isServableInFmp4(track));
  if (video === null && audio.length === 0) return null;
  if ((videos.length > 0 && video === null) || (audios.length > 0 && audio.length === 0)) return null;
  const name = rendition.audioVariantName === '' ? 'audio' : rendition.audioVariantName;
  return { video, audio, groupId: rendition.audioIndexHint < 0 ? name : `${name}_${rendition.audioIndexHint}` };
}

function pick<T extends 'video' | 'audio'>(
  tracks: readonly Track[],
  type: T,
  variantName: string,
  hint: number,
): Extract<Track, { type: T }>[] {
  const matching = tracks.filter((track): track is Extract<Track, { type: T }> => track.type === type && track.variantName === variantName);
  return hint < 0 ? matching : matching.slice(hint, hint + 1);
}

function audioGroup(groupId: string, tracks: readonly AudioTrack[], uri: (track: AudioTrack) => string): string {
  return tracks
    .map((track, index) =>
      serializeAudioRendition({
        groupId,
        name: track.publicName,
        default: index === 0,
        autoselect: true,
        channels: track.channels > 0 ? track.channels : UNKNOWN_CHANNELS,
        language: track.language,
        characteristics: track.characteristics,
        uri: uri(track),
      }),
    )
    .join('');
}

function variant(
  rendition: ResolvedRendition,
  source: MultivariantSource,
  {
    uri,
    subtitleGroup,
    captions,
  }: {
    readonly uri: (track: VideoTrack | AudioTrack) => string;
    readonly subtitleGroup: string | null;
    readonly captions: CaptionGroups;
  },
): string {
  const { video } = rendition;
  const audio = rendition.audio[0] ?? null;
  const main = video ?? audio;
  if (main === null) return '';
  const audioBandwidth = Math.max(0, ...rendition.audio.map((track) => source.bandwidth(track)));
  const bandwidth = (video === null ? 0 : source.bandwidth(video)) + audioBandwidth;
  return serializeVariant({
    bandwidth: bandwidth > 0 ? Math.round(bandwidth) : UNKNOWN_BANDWIDTH,
    video: video === null ? null : { width: video.width, height: video.height, frameRate: frameRate(video, source) },
    codecs: [...new Set([video, ...rendition.audio].flatMap((track) => (track === null ? [] : [track.codecString])))],
    audioGroup: video !== null && audio !== null ? rendition.groupId : null,
    subtitleGroup,
    captionGroup: video === null ? null : captions.idOf(source.captions(video)),
    uri: uri(main),
  });
}

function frameRate(track: VideoTrack, source: MultivariantSource): number {
  if (track.framerateConf > 0) return track.framerateConf;
  const measured = source.frameRate(track);
  return measured > 0 ? measured : UNKNOWN_FRAME_RATE;
}

/** `HLSChunklistPathDepth`: prefix of media playlist names. */
function uriPrefix(depth: number, source: MultivariantSource): string {
  const app = encodeURIComponent(source.app);
  const stream = encodeURIComponent(source.stream);
  if (depth === 0) return '';
  if (depth === 1) return `../${stream}/`;
  if (depth === 2) return `../../${app}/${stream}/`;
  return `/${app}/${stream}/`;
}
