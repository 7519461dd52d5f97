/** Reads media playlists (rfc8216bis §4.4.3–4.4.5), to judge what the server wrote. */

import type { PartTag, PreloadHint, RenditionReport, ServerControl } from '../../../src/playlist/media-tags.ts';
import { ProtocolError } from '../../../src/util/protocol-error.ts';
import {
  parseAttributeList,
  parseDecimal,
  parsePart,
  parsePartInf,
  parsePreloadHint,
  parseProgramDateTime,
  parseRenditionReport,
  parseServerControl,
  parseSkip,
  requireAttribute,
} from './tag-readers.ts';

/** A listed segment; the last segment may have parts but no URI yet. */
export interface ListedSegment {
  readonly msn: number;
  /** EXTINF seconds and URI; null while the segment is still growing. */
  duration: number | null;
  uri: string | null;
  parts: PartTag[];
  discontinuity: boolean;
  gap: boolean;
  programDateTime: number | null;
  /** URI of the EXT-X-MAP in effect. */
  map: string | null;
}

/** Content of a playlist: null for absent tags, durations in seconds. */
export interface MediaPlaylist {
  version: number;
  targetDuration: number | null;
  mediaSequence: number;
  discontinuitySequence: number;
  serverControl: ServerControl | null;
  partTarget: number | null;
  skippedSegments: number;
  segments: ListedSegment[];
  preloadHint: PreloadHint | null;
  renditionReports: RenditionReport[];
  ended: boolean;
}

interface Reader {
  readonly playlist: MediaPlaylist;
  /** The segment that collects tags until its URI. */
  open: ListedSegment | null;
  map: string | null;
}

type TagReader = (reader: Reader, value: string) => void;

const TAG_READERS: Readonly<Record<string, TagReader>> = {
  '#EXT-X-VERSION': (reader, value) => {
    reader.playlist.version = parseDecimal(value, 'EXT-X-VERSION');
  },
  '#EXT-X-TARGETDURATION': (reader, value) => {
    reader.playlist.targetDuration = parseDecimal(value, 'EXT-X-TARGETDURATION');
  },
  '#EXT-X-MEDIA-SEQUENCE': (reader, value) => {
    reader.playlist.mediaSequence = parseDecimal(value, 'EXT-X-MEDIA-SEQUENCE');
  },
  '#EXT-X-DISCONTINUITY-SEQUENCE': (reader, value) => {
    reader.playlist.discontinuitySequence = parseDecimal(value, 'EXT-X-DISCONTINUITY-SEQUENCE');
  },
  '#EXT-X-SERVER-CONTROL': (reader, value) => {
    reader.playlist.serverControl = parseServerControl(value);
  },
  '#EXT-X-PART-INF': (reader, value) => {
    reader.playlist.partTarget = parsePartInf(value);
  },
  '#EXT-X-SKIP': (reader, value) => {
    reader.playlist.skippedSegments = parseSkip(value);
  },
  '#EXT-X-PRELOAD-HINT': (reader, value) => {
    reader.playlist.preloadHint = parsePreloadHint(value);
  },
  '#EXT-X-RENDITION-REPORT': (reader, value) => {
    reader.playlist.renditionReports.push(parseRenditionReport(value));
  },
  '#EXT-X-ENDLIST': (reader) => {
    reader.playlist.ended = true;
  },
  '#EXT-X-MAP': (reader, value) => {
    reader.map = requireAttribute(parseAttributeList(value), '#EXT-X-MAP', 'URI');
    if (reader.open !== null) reader.open.map = reader.map;
  },
  '#EXT-X-DISCONTINUITY': (reader) => {
    openSegment(reader).discontinuity = true;
  },
  '#EXT-X-GAP': (reader) => {
    openSegment(reader).gap = true;
  },
  '#EXT-X-PROGRAM-DATE-TIME': (reader, value) => {
    openSegment(reader).programDateTime = parseProgramDateTime(value);
  },
  '#EXT-X-PART': (reader, value) => {
    openSegment(reader).parts.push(parsePart(value));
  },
  '#EXTINF': (reader, value) => {
    openSegment(reader).duration = parseDecimal(value.split(',', 1)[0] ?? '', 'EXTINF');
  },
};

/** Reads `text`. Throws `ProtocolError` when it is not a media playlist; unknown tags are ignored as §6.3.1 demands. */
export function parseMediaPlaylist(text: string): MediaPlaylist {
  const lines = text.split(/\r?\n/);
  if (lines[0] !== '#EXTM3U') throw new ProtocolError('M3U8_HEADER', 'a playlist begins with #EXTM3U', 0);
  const reader: Reader = { playlist: emptyPlaylist(), open: null, map: null };
  for (const line of lines) {
    if (line === '') continue;
    if (!line.startsWith('#')) {
      const segment = openSegment(reader);
      if (segment.duration === null) throw new ProtocolError('M3U8_SEGMENT', `${line} has no EXTINF`);
      segment.uri = line;
      reader.open = null;
      continue;
    }
    const colon = line.indexOf(':');
    const tag = colon < 0 ? line : line.slice(0, colon);
    TAG_READERS[tag]?.(reader, colon < 0 ? '' : line.slice(colon + 1));
  }
  return reader.playlist;
}

function openSegment(reader: Reader): ListedSegment {
  if (reader.open !== null) return reader.open;
  const { playlist } = reader;
  const segment: ListedSegment = {
    msn: playlist.mediaSequence + playlist.skippedSegments + playlist.segments.length,
    duration: null,
    uri: null,
    parts: [],
    discontinuity: false,
    gap: false,
    programDateTime: null,
    map: reader.map,
  };
  playlist.segments.push(segment);
  reader.open = segment;
  return segment;
}

function emptyPlaylist(): MediaPlaylist {
  return {
    version: 1,
    targetDuration: null,
    mediaSequence: 0,
    discontinuitySequence: 0,
    serverControl: null,
    partTarget: null,
    skippedSegments: 0,
    segments: [],
    preloadHint: null,
    renditionReports: [],
    ended: false,
  };
}
