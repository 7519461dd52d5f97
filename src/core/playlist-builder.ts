import { type AudioTrack, isImageTrack, isVideoTrack, type Track, type VideoTrack } from '../media/track.ts';
import { compileWildcard } from '../util/wildcard.ts';
import type { Playlist, PlaylistRendition } from './playlist.ts';
import type { Publisher, TrackFigures } from './publishing.ts';

interface TemplateFilter {
  readonly variant_name?: string | undefined;
  readonly encoding_type: string;
  readonly max_bitrate: number;
  readonly min_bitrate: number;
}

interface VideoTemplate extends TemplateFilter {
  readonly max_width: number;
  readonly min_width: number;
  readonly max_height: number;
  readonly min_height: number;
  readonly max_framerate: number;
  readonly min_framerate: number;
}

interface AudioTemplate extends TemplateFilter {
  readonly max_samplerate: number;
  readonly min_samplerate: number;
  readonly max_channel: number;
  readonly min_channel: number;
}

/** A playlist as configured in an output profile. */
export interface PlaylistRules {
  readonly name?: string | undefined;
  readonly fileName: string;
  readonly options: {
    readonly webRtcAutoAbr: boolean;
    readonly hLSChunklistPathDepth: number;
    readonly enableTsPackaging: boolean;
    readonly enableSubtitles?: boolean | undefined;
  };
  readonly renditions: readonly {
    readonly name: string;
    readonly video?: string | undefined;
    readonly audio?: string | undefined;
    readonly video_index_hint: number;
    readonly audio_index_hint: number;
  }[];
  readonly rendition_templates: readonly {
    readonly name: string;
    readonly video_template?: VideoTemplate | undefined;
    readonly audio_template?: AudioTemplate | undefined;
  }[];
}

type Figures = (trackId: number) => TrackFigures;

/** Where the playlists of a stream come from. */
export interface PlaylistSources {
  /** Playlists of its source. */
  readonly inherited: readonly Playlist[];
  /** Playlists of its output profile. */
  readonly rules: readonly PlaylistRules[];
  readonly publishers: readonly { readonly publisher: Publisher; readonly settings: unknown }[];
  readonly figures: Figures;
}

/** Playlists of the source, configured ones, then the publishers' default ones whose file name is still free; sorted by file name. */
export function playlistsOf(tracks: readonly Track[], { inherited, rules, publishers, figures }: PlaylistSources): Playlist[] {
  const playlists = [...inherited];
  for (const rule of rules) {
    const playlist = buildPlaylist(rule, tracks, figures);
    if (playlist !== null) playlists.push(playlist);
  }
  for (const { publisher, settings } of publishers) {
    const playlist = publisher.defaultPlaylist(tracks, settings);
    if (playlist !== null && !playlists.some((other) => other.fileName === playlist.fileName)) playlists.push(playlist);
  }
  return playlists.sort((a, b) => (a.fileName < b.fileName ? -1 : 1));
}

/** The configured playlist for the tracks there are, or null when no rendition is left. */
export function buildPlaylist(rules: PlaylistRules, tracks: readonly Track[], figures: Figures): Playlist | null {
  const renditions = [...namedRenditions(rules, tracks), ...templateRenditions(rules, tracks, figures)];
  if (renditions.length === 0) return null;
  return {
    name: rules.name ?? '',
    fileName: rules.fileName,
    options: {
      webrtcAutoAbr: rules.options.webRtcAutoAbr,
      hlsChunklistPathDepth: rules.options.hLSChunklistPathDepth,
      enableTsPackaging: rules.options.enableTsPackaging,
      enableSubtitles: rules.options.enableSubtitles ?? true,
    },
    renditions,
  };
}

/** A rendition whose video or audio is missing in the stream is left out. */
function namedRenditions(rules: PlaylistRules, tracks: readonly Track[]): PlaylistRendition[] {
  const exists = (type: Track['type'], variant: string | undefined): boolean =>
    variant === undefined || tracks.some((track) => track.type === type && !isImageTrack(track) && track.variantName === variant);
  return rules.renditions
    .filter((rendition) => exists('video', rendition.video) && exists('audio', rendition.audio))
    .filter((rendition) => rendition.video !== undefined || rendition.audio !== undefined)
    .map((rendition) => ({
      name: rendition.name,
      videoVariantName: rendition.video ?? '',
      audioVariantName: rendition.audio ?? '',
      videoIndexHint: rendition.video_index_hint,
      audioIndexHint: rendition.audio_index_hint,
    }));
}

function templateRenditions(rules: PlaylistRules, tracks: readonly Track[], figures: Figures): PlaylistRendition[] {
  const renditions: PlaylistRendition[] = [];
  const taken = new Set(rules.renditions.map((rendition) => rendition.name));
  for (const template of rules.rendition_templates) {
    const { video_template, audio_template } = template;
    const videos: (VideoTrack | null)[] = video_template
      ? tracks.filter((track): track is VideoTrack => isVideoTrack(track) && fitsVideo(track, video_template, figures))
      : [null];
    const audios: (AudioTrack | null)[] = audio_template ? firstOfEachVariant(tracks, audio_template, figures) : [null];
    for (const video of videos.length > 0 ? videos : [null]) {
      for (const audio of audios.length > 0 ? audios : [null]) {
        if (video === null && audio === null) continue;
        renditions.push({
          name: uniqueName(expandName(template.name, video, audio, figures), taken),
          videoVariantName: video?.variantName ?? '',
          audioVariantName: audio?.variantName ?? '',
          videoIndexHint: video === null ? -1 : indexInVariant(tracks, video),
          audioIndexHint: -1,
        });
      }
    }
  }
  return renditions;
}

function firstOfEachVariant(tracks: readonly Track[], template: AudioTemplate, figures: Figures): AudioTrack[] {
  const seen = new Set<string>();
  const result: AudioTrack[] = [];
  for (const track of tracks) {
    if (track.type !== 'audio' || seen.has(track.variantName) || !fitsAudio(track, template, figures)) continue;
    seen.add(track.variantName);
    result.push(track);
  }
  return result;
}

function indexInVariant(tracks: readonly Track[], wanted: VideoTrack): number {
  return tracks.filter((track) => isVideoTrack(track) && track.variantName === wanted.variantName).indexOf(wanted);
}

function within(value: number, min: number, max: number): boolean {
  return (min < 0 || value >= min) && (max < 0 || value <= max);
}

function fits(track: VideoTrack | AudioTrack, filter: TemplateFilter, figures: Figures): boolean {
  const { variant_name: pattern = '' } = filter;
  if (pattern !== '' && !compileWildcard(pattern)(track.variantName)) return false;
  const type = filter.encoding_type.toLowerCase();
  if ((type === 'bypassed' && !track.bypass) || (type === 'encoded' && track.bypass)) return false;
  return within(track.bitrateConf || figures(track.id).bitrateAvg, filter.min_bitrate, filter.max_bitrate);
}

function fitsVideo(track: VideoTrack, filter: VideoTemplate, figures: Figures): boolean {
  return (
    fits(track, filter, figures) &&
    within(track.width, filter.min_width, filter.max_width) &&
    within(track.height, filter.min_height, filter.max_height) &&
    within(track.framerateConf || figures(track.id).framerateAvg, filter.min_framerate, filter.max_framerate)
  );
}

function fitsAudio(track: AudioTrack, filter: AudioTemplate, figures: Figures): boolean {
  return (
    fits(track, filter, figures) &&
    within(track.sampleRate, filter.min_samplerate, filter.max_samplerate) &&
    within(track.channels, filter.min_channel, filter.max_channel)
  );
}

function expandName(pattern: string, video: VideoTrack | null, audio: AudioTrack | null, figures: Figures): string {
  const bitrate = [video, audio].reduce((sum, track) => sum + (track === null ? 0 : track.bitrateConf || figures(track.id).bitrateAvg), 0);
  const values: Record<string, string> = {
    Width: String(video?.width ?? ''),
    Height: String(video?.height ?? ''),
    Bitrate: String(bitrate),
    Framerate: video === null ? '' : String(Math.round((video.framerateConf || figures(video.id).framerateAvg) * 100) / 100),
    Samplerate: String(audio?.sampleRate ?? ''),
    Channel: String(audio?.channels ?? ''),
  };
  return pattern.replaceAll(/\$\{(\w+)\}/g, (macro, key: string) => values[key] ?? macro);
}

function uniqueName(name: string, taken: Set<string>): string {
  let unique = name;
  for (let suffix = 1; taken.has(unique); suffix += 1) unique = `${name}_${suffix}`;
  taken.add(unique);
  return unique;
}
