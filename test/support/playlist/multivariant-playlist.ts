/** Reads multivariant playlists (rfc8216bis §4.4.6). */
import { ProtocolError } from '../../../src/util/protocol-error.ts';
import { type AttributeList, parseMedia, parseStreamInf } from './tag-readers.ts';

/** `media` are the EXT-X-MEDIA tags, `variants` the EXT-X-STREAM-INF tags, each with the URI after it, in the order of the text. */
export interface MultivariantPlaylist {
  readonly independentSegments: boolean;
  readonly media: readonly AttributeList[];
  readonly variants: readonly { readonly attributes: AttributeList; readonly uri: string }[];
}

/** Reads `text`. Throws `ProtocolError` when it is not a multivariant playlist. */
export function parseMultivariantPlaylist(text: string): MultivariantPlaylist {
  const lines = text.split(/\r?\n/);
  if (lines[0] !== '#EXTM3U') throw new ProtocolError('M3U8_HEADER', 'a playlist begins with #EXTM3U', 0);
  const media: AttributeList[] = [];
  const variants: { attributes: AttributeList; uri: string }[] = [];
  let pending: AttributeList | null = null;
  for (const line of lines) {
    if (line.startsWith('#EXT-X-MEDIA:')) media.push(parseMedia(line.slice('#EXT-X-MEDIA:'.length)));
    else if (line.startsWith('#EXT-X-STREAM-INF:')) pending = parseStreamInf(line.slice('#EXT-X-STREAM-INF:'.length));
    else if (line !== '' && !line.startsWith('#')) {
      if (pending === null) throw new ProtocolError('M3U8_VARIANT', `${line} has no EXT-X-STREAM-INF`);
      variants.push({ attributes: pending, uri: line });
      pending = null;
    }
  }
  if (pending !== null) throw new ProtocolError('M3U8_VARIANT', 'EXT-X-STREAM-INF without a URI');
  return { independentSegments: lines.includes('#EXT-X-INDEPENDENT-SEGMENTS'), media, variants };
}
