/** Decides which segments of a track or variant can be played: a number of segments in memory, then files as far as DVR reaches. */
import type { Span } from '../../../delivery/feed/messages.ts';
import type { DvrArchive } from '../dvr/dvr-archive.ts';

/** A segment as a window sees it. */
export interface WindowedSegment {
  /** Seconds; null while it grows. */
  readonly duration: number | null;
  /** File that holds it; null while it is in memory. */
  readonly path: string | null;
  /** The segment has no media, so there is nothing to keep. */
  readonly gap?: boolean;
}

/** The stream's memory for segments. */
export interface SegmentMemory {
  /** Views of stored bytes; valid until they are released. */
  read(spans: readonly Span[]): readonly Uint8Array[];
  release(spans: readonly Span[]): void;
  /**
   * True: the stream uses too much memory, and the owner of these spans at least an equal share, so the owner keeps only one complete
   * segment.
   */
  asksBack(spans: () => readonly Span[]): boolean;
}

/** The segments of one track or variant, and the updates that tell views of them. */
export interface SegmentList<Segment extends WindowedSegment> {
  /** Oldest first; the last may be growing. */
  readonly segments: readonly Segment[];
  /** See `SegmentMemory`. */
  asksBack(): boolean;
  /** The bytes of a segment that is in memory. */
  read(segment: Segment): readonly Uint8Array[];
  /** Name of its file, below the folder of the stream. */
  fileOf(segment: Segment): string;
  /** Its bytes are in the file at `path` now and leave memory. */
  archived(segment: Segment, path: string): void;
  /** The oldest segment leaves the playlists. Returns the path of a file that is no longer needed, or null. */
  retire(): string | null;
  /** Lets go of everything; returns the paths of all files. */
  clear(): string[];
  /** Sends updates made outside of a packet's turn. */
  flush(): void;
}

/** Rewinding beyond memory. */
export interface Rewinding {
  /** The archive of the stream, which closes it. */
  readonly archive: DvrArchive;
  /** Seconds of media that stay playable. */
  readonly maxDuration: number;
}

/** One for each track or variant. Needs no closing: the memory and the archive of the stream release the rest. */
export class SegmentWindow<Segment extends WindowedSegment> {
  readonly #list: SegmentList<Segment>;
  readonly #memoryCount: number;
  readonly #rewinding: Rewinding | null;
  readonly #writing = new Set<Segment>();
  #shortened = 0;

  /** `memoryCount`: complete segments that stay in memory; without `rewinding` they are all there is. */
  constructor(list: SegmentList<Segment>, memoryCount: number, rewinding: Rewinding | null) {
    this.#list = list;
    this.#memoryCount = memoryCount;
    this.#rewinding = rewinding;
  }

  /** Segments that left memory early because of their bytes. */
  get shortened(): number {
    return this.#shortened;
  }

  /** A segment of the list is complete: segments beyond the window leave. */
  segmentClosed(): void {
    if (this.#rewinding === null) {
      this.#forget();
      return;
    }
    this.#archiveSurplus(this.#rewinding.archive);
    this.#trim(this.#rewinding.maxDuration);
  }

  /** Lets go of everything: the track or variant is gone. */
  clear(): void {
    for (const path of this.#list.clear()) this.#rewinding?.archive.remove(path);
  }

  #forget(): void {
    const complete = this.#list.segments.filter(({ duration }) => duration !== null).length;
    for (let left = complete; left > this.#memoryCount || (left > 1 && this.#list.asksBack()); left -= 1) {
      if (left <= this.#memoryCount) this.#shortened += 1;
      this.#retire();
    }
  }

  #archiveSurplus(archive: DvrArchive): void {
    const inMemory = this.#list.segments.filter(({ duration, path, gap }) => duration !== null && path === null && gap !== true);
    const allowed = Math.min(inMemory.length, this.#memoryCount);
    const kept = allowed > 1 && this.#list.asksBack() ? 1 : allowed;
    this.#shortened += allowed - kept;
    for (const segment of inMemory.slice(0, inMemory.length - kept)) if (!this.#writing.has(segment)) this.#archive(segment, archive);
  }

  #archive(segment: Segment, archive: DvrArchive): void {
    const list = this.#list;
    const read = (): readonly Uint8Array[] | null => (list.segments.includes(segment) ? list.read(segment) : null);
    const isTaken = archive.write(list.fileOf(segment), read, (path) => {
      this.#writing.delete(segment);
      if (list.segments.includes(segment)) {
        if (path === null) this.#abandon(segment);
        else list.archived(segment, path);
      } else if (path !== null) archive.remove(path);
      list.flush();
    });
    if (isTaken) this.#writing.add(segment);
    else this.#abandon(segment);
  }

  /** Playlists cannot have holes: everything up to the segment that could not be written goes. */
  #abandon(segment: Segment): void {
    for (let count = this.#list.segments.indexOf(segment) + 1; count > 0; count -= 1) this.#retire();
  }

  #trim(maxDuration: number): void {
    const { segments } = this.#list;
    let total = segments.reduce((sum, { duration }) => sum + (duration ?? 0), 0);
    for (let oldest = segments[0]; oldest !== undefined && (oldest.path !== null || oldest.gap === true); oldest = segments[0]) {
      if (total <= maxDuration) return;
      total -= oldest.duration ?? 0;
      this.#retire();
    }
  }

  #retire(): void {
    const path = this.#list.retire();
    if (path !== null) this.#rewinding?.archive.remove(path);
  }
}
