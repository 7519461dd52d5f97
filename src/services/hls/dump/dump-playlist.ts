/** The media playlist of a dumped track or variant: complete at any moment, as players expect of a recording. */
import { quoted, seconds } from '../../../playlist/attribute-list.ts';
import { GAP, serializeProgramDateTime } from '../../../playlist/media-tags.ts';

/** EXT-X-VERSION without and with EXT-X-MAP (rfc8216bis §8). */
const PLAIN_VERSION = 3;
const MAP_VERSION = 6;
/** EXT-X-VERSION with EXT-X-GAP. */
const GAP_VERSION = 8;

/** A segment that is on disk; URIs are relative to the playlist. */
export interface DumpedSegment {
  readonly uri: string;
  /** Null for segments that need none. */
  readonly init: string | null;
  /** Seconds. */
  readonly duration: number;
  /** ms since the epoch. */
  readonly startTime: number;
  readonly discontinuity: boolean;
  /** Whole lines before it; default: none. */
  readonly tags?: string;
  /** The segment could not be written: players skip it. */
  readonly gap?: boolean;
}

/** Grows by one segment at a time; `text` is always that of an ended playlist. */
export class DumpPlaylist {
  /** Name of the playlist itself. */
  readonly uri: string;
  #longest = 0;
  #count = 0;
  #hasGaps = false;
  #init: string | null = null;
  #lines = '';

  constructor(uri: string) {
    this.uri = uri;
  }

  add(segment: DumpedSegment): void {
    // Media before the first segment is not part of the dump.
    if (segment.discontinuity && this.#count > 0) this.#lines += '#EXT-X-DISCONTINUITY\n';
    // A missing segment's init segment may be missing, too.
    const isGap = segment.gap === true;
    if (!isGap && segment.init !== null && segment.init !== this.#init) this.#lines += `#EXT-X-MAP:URI=${quoted(segment.init)}\n`;
    this.#lines += (segment.tags ?? '') + serializeProgramDateTime(segment.startTime);
    if (isGap) this.#lines += GAP;
    this.#lines += `#EXTINF:${seconds(segment.duration)},\n${segment.uri}\n`;
    if (!isGap) this.#init = segment.init;
    this.#hasGaps ||= isGap;
    this.#count += 1;
    this.#longest = Math.max(this.#longest, segment.duration);
  }

  get #version(): number {
    if (this.#hasGaps) return GAP_VERSION;
    return this.#init === null ? PLAIN_VERSION : MAP_VERSION;
  }

  get text(): string {
    const head = `#EXTM3U\n#EXT-X-VERSION:${this.#version}\n#EXT-X-TARGETDURATION:${Math.max(1, Math.round(this.#longest))}\n`;
    return `${head}#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-PLAYLIST-TYPE:VOD\n${this.#lines}#EXT-X-ENDLIST\n`;
  }
}
