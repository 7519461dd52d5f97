/** Texts of version 3 playlists, RFC 8216. */
import { serializeProgramDateTime } from '../../../../playlist/program-date-time.ts';
import type { HlsMultivariant, HlsSegment } from '../../wire/ts/update.ts';

const HEAD = '#EXTM3U\n#EXT-X-VERSION:3\n';

/** `query` is appended to the URIs of the media playlists, without `?`; '' for none. */
export function multivariantText(playlist: HlsMultivariant, query: string): string {
  const suffix = query === '' ? '' : `?${query}`;
  const lines = playlist.renditions.map(
    ({ attributes, variant }) => `#EXT-X-STREAM-INF:${attributes}\n${mediaPlaylistName(variant)}${suffix}\n`,
  );
  return HEAD + lines.join('');
}

/**
 * A media playlist of `segments`, which follow each other. `segmentDuration` is the configured one; the target duration
 * is larger when a listed segment had to be, because RFC 8216 §4.3.3.1 forbids a smaller one.
 */
export function mediaText(list: {
  readonly variant: string;
  readonly segments: readonly HlsSegment[];
  readonly segmentDuration: number;
  readonly event: boolean;
  readonly concluded: boolean;
}): string {
  const [first] = list.segments;
  const target = list.segments.reduce((longest, { duration }) => Math.max(longest, Math.round(duration)), Math.round(list.segmentDuration));
  const type = list.event ? '#EXT-X-PLAYLIST-TYPE:EVENT\n' : '';
  let text = `${HEAD}${type}#EXT-X-TARGETDURATION:${target}\n#EXT-X-MEDIA-SEQUENCE:${first?.number ?? 0}\n`;
  const goneDiscontinuities = first === undefined ? 0 : first.discontinuities - Number(first.discontinuity);
  if (goneDiscontinuities > 0) text += `#EXT-X-DISCONTINUITY-SEQUENCE:${goneDiscontinuities}\n`;
  for (const segment of list.segments) {
    if (segment.discontinuity) text += '#EXT-X-DISCONTINUITY\n';
    text += serializeProgramDateTime(segment.startTime);
    text += `#EXTINF:${segment.duration.toFixed(3)},\n${segmentName(list.variant, segment.number)}\n`;
  }
  return list.concluded ? `${text}#EXT-X-ENDLIST\n` : text;
}

/** Name of the media playlist of a variant. */
export function mediaPlaylistName(variant: string): string {
  return `medialist_${variant}_hls.m3u8`;
}

/** Name of a segment of a variant. */
export function segmentName(variant: string, number: number): string {
  return `seg_${variant}_${number}_hls.ts`;
}
