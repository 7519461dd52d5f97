/** Observes the segments of a stream beside its views. */

/** A complete segment, with file names for a folder that holds the whole stream. */
export interface ObservedSegment {
  /** File name of its media playlist. */
  readonly playlist: string;
  /** Its own file name. */
  readonly uri: string;
  /** Number within its media playlist. */
  readonly number: number;
  /** Its init segment, in a file of its own; null for segments that need none. */
  readonly init: { readonly uri: string; readonly bytes: Uint8Array } | null;
  /** Seconds. */
  readonly duration: number;
  /** Wall clock of its first frame, ms since the epoch. */
  readonly startTime: number;
  /** Its parameters differ from those of the previous segment. */
  readonly discontinuity: boolean;
  /** Lines of the playlist before it, of breaks that begin or end there; mostly ''. */
  readonly tags: string;
  /** Copies its bytes. Only during the call that brought the segment. */
  read(): Buffer;
}

/** Told by the stream, in the turn of the packet that completes a segment. */
export interface SegmentObserver {
  /** A segment is complete. Must not throw. */
  segmentFinished(segment: ObservedSegment): void;
  /** The stream has ended; every segment has been reported. */
  streamEnded(): void;
}

/** A packaged stream as observers see it. */
export interface SegmentSource {
  /** Internal path, `#<vhost>#<app>/<stream>`. */
  readonly path: string;
  /** File names of the multivariant playlists, with `.m3u8`. */
  readonly playlistNames: readonly string[];
  /** Reports every further segment to `observer`; if the stream has ended, reports that. */
  observe(observer: SegmentObserver): void;
  unobserve(observer: SegmentObserver): void;
  /**
   * Complete segments in memory for a late observer, from the newest segment that all media playlists have, each playlist's in order. [] if
   * there are none, or if the playlists number their segments separately. Their bytes can be read until the next packet.
   */
  newestSegments(): ObservedSegment[];
  /** The present multivariant playlists (all, or those of these names), for files in one folder: no paths, no queries. */
  plainMultivariants(names: readonly string[]): [name: string, text: string][];
}
