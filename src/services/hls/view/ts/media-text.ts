/** Texts of version 3 media playlists, RFC 8216. */
import { serializeProgramDateTime } from '../../../../playlist/media-tags.ts';
import { PLAYLIST_HEAD, segmentName } from '../../wire/ts/multivariant-text.ts';
import type { HlsSegment } from '../../wire/ts/update.ts';

/**
 * A media playlist of `segments`, which follow each other, cut behind each URI, where a viewer's query belongs. `segmentDuration`: as
 * configured. The target duration is larger if a listed segment is longer, because RFC 8216 §4.3.3.1 forbids a smaller one.
 */
export function mediaPieces(list: {
  readonly variant: string;
  readonly segments: readonly HlsSegment[];
  readonly segmentDuration: number;
  readonly event: boolean;
  readonly concluded: boolean;
}): string[] {
  const [first] = list.segments;
  const target = list.segments.reduce((longest, { duration }) => Math.max(longest, Math.round(duration)), Math.round(list.segmentDuration));
  const type = list.event ? '#EXT-X-PLAYLIST-TYPE:EVENT\n' : '';
  let text = `${PLAYLIST_HEAD}${type}#EXT-X-TARGETDURATION:${target}\n#EXT-X-MEDIA-SEQUENCE:${first?.number ?? 0}\n`;
  const goneDiscontinuities = first === undefined ? 0 : first.discontinuities - Number(first.discontinuity);
  if (goneDiscontinuities > 0) text += `#EXT-X-DISCONTINUITY-SEQUENCE:${goneDiscontinuities}\n`;
  const pieces: string[] = [];
  for (const segment of list.segments) {
    if (segment.discontinuity) text += '#EXT-X-DISCONTINUITY\n';
    text += segment.tags + serializeProgramDateTime(segment.startTime);
    pieces.push(`${text}#EXTINF:${segment.duration.toFixed(3)},\n${segmentName(list.variant, segment.number)}`);
    text = '\n';
  }
  pieces.push(list.concluded ? `${text}#EXT-X-ENDLIST\n` : text);
  return pieces;
}
