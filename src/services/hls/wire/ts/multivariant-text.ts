/** Texts of multivariant playlists of version 3 (RFC 8216), and the names in them. */
import type { HlsMultivariant } from './update.ts';

/** How every playlist of version 3 begins. */
export const PLAYLIST_HEAD = '#EXTM3U\n#EXT-X-VERSION:3\n';

/** `query` is appended to the URIs of the media playlists, without `?`; '' for none. `base` stands in front of their names. */
export function multivariantText(playlist: HlsMultivariant, query: string, base = ''): string {
  const suffix = query === '' ? '' : `?${query}`;
  const lines = playlist.renditions.map(
    ({ attributes, variant }) => `#EXT-X-STREAM-INF:${attributes}\n${base}${mediaPlaylistName(variant)}${suffix}\n`,
  );
  return PLAYLIST_HEAD + lines.join('');
}

/** Name of the media playlist of a variant. */
export function mediaPlaylistName(variant: string): string {
  return `medialist_${variant}_hls.m3u8`;
}

/** Name of a segment of a variant. */
export function segmentName(variant: string, number: number): string {
  return `seg_${variant}_${number}_hls.ts`;
}
