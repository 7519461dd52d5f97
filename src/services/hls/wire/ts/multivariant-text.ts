/** Texts of multivariant playlists of version 3 (RFC 8216), and the names in them. */
import { TAIL_MARK } from '../fmp4/update.ts';
import type { HlsMultivariant } from './update.ts';

/** EXT-X-VERSION for transport streams. */
export const PLAYLIST_VERSION = 3;
/** EXT-X-VERSION with services of CTA-708 (rfc8216bis §8). */
export const SERVICES_VERSION = 7;
/** The beginning of every media playlist. */
export const PLAYLIST_HEAD = `#EXTM3U\n#EXT-X-VERSION:${PLAYLIST_VERSION}\n`;

/** `query` is appended to the URIs of the media playlists, without `?`; '' for none. `base` precedes their names. */
export function multivariantText(playlist: HlsMultivariant, query: string, base = ''): string {
  const suffix = query === '' ? '' : `?${query}`;
  const uri = (variant: string): string => base + mediaPlaylistName(variant) + suffix;
  const media = playlist.subtitles.map(({ line, variant }) => line.replace(URI_MARK, () => uri(variant)));
  const lines = playlist.renditions.map(({ attributes, variant }) => `#EXT-X-STREAM-INF:${attributes}\n${uri(variant)}\n`);
  return `#EXTM3U\n#EXT-X-VERSION:${playlist.version}\n${media.join('')}${playlist.captions}${lines.join('')}`;
}

/** Name of the media playlist of a variant. */
export function mediaPlaylistName(variant: string): string {
  return `medialist_${variant}_hls.m3u8`;
}

/** Placeholder of the URI of a media playlist in lines of multivariant playlists. */
export const URI_MARK = TAIL_MARK;

const SUBTITLES = 'sub';

/** The variant with the segments of a subtitle track. */
export function subtitleVariant(trackId: number): string {
  return `${SUBTITLES}${trackId}`;
}

/** Kind of a variant's segments: transport streams, or subtitles. */
export function segmentExtension(variant: string): 'ts' | 'vtt' {
  return variant.startsWith(SUBTITLES) ? 'vtt' : 'ts';
}

/** Name of a segment of a variant. */
export function segmentName(variant: string, number: number): string {
  return `seg_${variant}_${number}_hls.${segmentExtension(variant)}`;
}
