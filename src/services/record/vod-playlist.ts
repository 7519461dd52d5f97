/** Playlists of recorded files (RFC 8216): byte ranges of the files themselves. */
import type { VodLayout } from './vod-segments.ts';

/** A file in a playlist. */
export interface VodFile {
  readonly layout: VodLayout;
  /** Wall clock of its beginning, ms. */
  readonly startTime: number;
  /** URIs of the file, and the prefix of its pieces. */
  readonly uri: string;
  readonly initUri: string;
}

/** Playlist of consecutive files; `from` and `to`, ms since the epoch, limit it. Null: it is empty. */
export function vodPlaylist(files: readonly VodFile[], from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY): string | null {
  const lines: string[] = [];
  let longest = 0;
  let isFirst = true;
  for (const { layout, startTime, uri, initUri } of files) {
    let begins = startTime;
    let isNew = true;
    for (const { offset, length, duration } of layout.segments) {
      const ends = begins + duration * 1000;
      if (ends > from && begins < to) {
        if (isNew && !isFirst) lines.push('#EXT-X-DISCONTINUITY');
        if (isNew && layout.init !== null) lines.push(`#EXT-X-MAP:URI="${initUri}",BYTERANGE="${lengthOf(layout.init)}@0"`);
        if (isNew) lines.push(`#EXT-X-PROGRAM-DATE-TIME:${new Date(begins).toISOString()}`);
        lines.push(`#EXTINF:${duration.toFixed(3)},`, `#EXT-X-BYTERANGE:${length}@${offset}`, uri);
        longest = Math.max(longest, duration);
        isNew = false;
        isFirst = false;
      }
      begins = ends;
    }
  }
  if (isFirst) return null;
  const version = files.some(({ layout }) => layout.init !== null) ? 6 : 4;
  const head = ['#EXTM3U', `#EXT-X-VERSION:${version}`, `#EXT-X-TARGETDURATION:${Math.max(1, Math.ceil(longest))}`];
  return `${[...head, '#EXT-X-PLAYLIST-TYPE:VOD', '#EXT-X-MEDIA-SEQUENCE:0', '#EXT-X-INDEPENDENT-SEGMENTS', ...lines, '#EXT-X-ENDLIST'].join('\n')}\n`;
}

/** FFmpeg requests the range of the last piece again if the head has no range of its own, and waits for bytes that do not exist. */
function lengthOf(ranges: readonly { readonly length: number }[]): number {
  return ranges.reduce((sum, { length }) => sum + length, 0);
}
