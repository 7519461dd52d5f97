/** Header lines that both views answer with, without CRLF. */

/** Content type of playlists (RFC 8216 §4). */
export const PLAYLIST_TYPE = 'Content-Type: application/vnd.apple.mpegurl';
/** Content type of subtitle segments (WebVTT §10). */
export const VTT_TYPE = 'Content-Type: text/vtt; charset=utf-8';
/** Header of answers that no cache may keep. */
export const NO_STORE = 'Cache-Control: no-cache, no-store';

/** For an age in seconds; 0: never store, below 0: no header. */
export function cacheControl(maxAge: number): string[] {
  if (maxAge < 0) return [];
  return [maxAge === 0 ? NO_STORE : `Cache-Control: max-age=${maxAge}`];
}
