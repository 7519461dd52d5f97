/** The media playlist of a dumped track: complete at any moment, as players expect of a recording. */
import { quoted, seconds } from '../../playlist/attribute-list.ts';
import { serializeProgramDateTime } from '../../playlist/program-date-time.ts';

const VERSION = 6;

export interface DumpedSegment {
  readonly uri: string;
  readonly init: string;
  /** Seconds. */
  readonly duration: number;
  /** ms since the epoch. */
  readonly startTime: number;
  readonly discontinuity: boolean;
}

/** Grows by one segment at a time; the text is that of a playlist which ends here. */
export class DumpPlaylist {
  /** Name of the playlist itself. */
  readonly uri: string;
  #longest = 0;
  #count = 0;
  #init = '';
  #lines = '';

  constructor(uri: string) {
    this.uri = uri;
  }

  add(segment: DumpedSegment): void {
    // What lies before the first segment is not part of the dump.
    if (segment.discontinuity && this.#count > 0) this.#lines += '#EXT-X-DISCONTINUITY\n';
    if (segment.init !== this.#init) this.#lines += `#EXT-X-MAP:URI=${quoted(segment.init)}\n`;
    this.#lines += serializeProgramDateTime(segment.startTime);
    this.#lines += `#EXTINF:${seconds(segment.duration)},\n${segment.uri}\n`;
    this.#init = segment.init;
    this.#count += 1;
    this.#longest = Math.max(this.#longest, segment.duration);
  }

  get text(): string {
    const head = `#EXTM3U\n#EXT-X-VERSION:${VERSION}\n#EXT-X-TARGETDURATION:${Math.max(1, Math.round(this.#longest))}\n`;
    return `${head}#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-PLAYLIST-TYPE:VOD\n${this.#lines}#EXT-X-ENDLIST\n`;
  }
}
