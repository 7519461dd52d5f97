/** Chooses which tracks are muxed together for the renditions of a stream's playlists. */
import { describeAudio, describeVideo } from '../../../../codecs/describe.ts';
import type { Playlist, PlaylistRendition } from '../../../../core/playlist.ts';
import { AudioCodec, VideoCodec } from '../../../../media/codec.ts';
import type { AudioTrack, DataTrack, Track, VideoTrack } from '../../../../media/track.ts';
import { ProtocolError } from '../../../../util/protocol-error.ts';

/** Tracks in one transport stream. */
export interface HlsVariant {
  /** Part of file names: decimal, the same for the same choice of tracks. */
  readonly id: string;
  readonly video: VideoTrack | null;
  readonly audios: readonly AudioTrack[];
  readonly data: DataTrack | null;
}

/** A playlist and the variant of each rendition that can be served. */
export interface HlsPlaylistVariants {
  readonly fileName: string;
  readonly enableSubtitles: boolean;
  readonly variants: readonly HlsVariant[];
}

/** The playlists to serve, without those that have no servable rendition. Equal variants are one object. */
export function selectVariants(playlists: readonly Playlist[], tracks: readonly Track[]): HlsPlaylistVariants[] {
  const known = new Map<string, HlsVariant>();
  return playlists
    .filter(({ options }) => options.enableTsPackaging)
    .map(({ fileName, options: { enableSubtitles }, renditions }) => ({
      fileName,
      enableSubtitles,
      variants: renditions.flatMap((rendition) => variantOf(rendition, tracks, known) ?? []),
    }))
    .filter(({ variants }) => variants.length > 0);
}

/** True for the codecs that HLS over MPEG-TS is served with, once their parameters are known and can be read. */
export function isServableInTs(track: VideoTrack | AudioTrack): boolean {
  const served: readonly string[] = [VideoCodec.H264, VideoCodec.H265, AudioCodec.AAC];
  return served.includes(track.codec) && track.config !== null && isReadable(track, track.config);
}

function isReadable(track: VideoTrack | AudioTrack, config: Uint8Array): boolean {
  try {
    if (track.type === 'video') describeVideo(track.codec, config);
    else describeAudio(track.codec, config);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}

function variantOf(rendition: PlaylistRendition, tracks: readonly Track[], known: Map<string, HlsVariant>): HlsVariant | null {
  const { videoVariantName, audioVariantName, videoIndexHint, audioIndexHint } = rendition;
  const id = hashText(`${videoVariantName}${videoIndexHint}_${audioVariantName}${audioIndexHint}`);
  const existing = known.get(id);
  if (existing !== undefined) return existing;
  const videos = tracks.filter((track) => track.type === 'video' && isNamed(track, videoVariantName)) as VideoTrack[];
  const audios = tracks.filter((track) => track.type === 'audio' && isNamed(track, audioVariantName)) as AudioTrack[];
  const video = videos[Math.max(0, videoIndexHint)] ?? null;
  const chosen = audioIndexHint < 0 ? audios : audios.slice(audioIndexHint, audioIndexHint + 1);
  const wanted = [...(video === null ? [] : [video]), ...chosen];
  if (wanted.length === 0 || !wanted.every(isServableInTs)) return null;
  const variant: HlsVariant = { id, video, audios: chosen, data: tracks.find((track) => track.type === 'data') ?? null };
  known.set(id, variant);
  return variant;
}

function isNamed(track: Track, variantName: string): boolean {
  return variantName !== '' && track.variantName === variantName;
}

/** FNV-1a of the UTF-8 text, 32 bits, as decimal. */
function hashText(text: string): string {
  let hash = 0x81_1c_9d_c5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01_00_01_93);
  return (hash >>> 0).toString();
}
