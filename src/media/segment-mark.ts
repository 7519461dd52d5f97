/** Segment numbering of a stream, as announced to other servers of the same stream. */

/** Facts about all segments of a stream; durations in seconds. */
export interface SegmentFacts {
  readonly segmentDuration: number;
  readonly chunkDuration: number;
  /** 0: not announced yet. */
  readonly targetDuration: number;
  readonly partHoldBack: number;
  /** Time added to the times of all tracks in their files, ms. */
  readonly offset: number;
  readonly tracks: readonly SegmentedTrack[];
}

/** One track of a segmented stream. */
export interface SegmentedTrack {
  readonly id: number;
  /** Maximum duration of a part, in ticks of its file; 0: not known yet. */
  readonly partTicks: number;
  /** Number of the track's configuration. */
  readonly generation: number;
}

/** The start of a segment, with the packet that carries the mark. Times in ms of the numbered stream. */
export interface SegmentMark {
  /** Unique for each server and run of a stream: numbers of different runs are unrelated. */
  readonly run: string;
  readonly msn: number;
  /** Presentation time of the segment's first frame. */
  readonly time: number;
  /** The same time as wall clock, ms since the epoch. */
  readonly startTime: number;
  /** A discontinuity is listed before it. */
  readonly discontinuity: boolean;
  /** Number of earlier discontinuities of the stream. */
  readonly discontinuities: number;
  /** Whole lines that precede the segment in playlists. */
  readonly tags: string;
  /** Probable beginning of the next segment; null if unknown. */
  readonly expected: number | null;
  /** No other segment begins before this time. */
  readonly earliest: number;
  readonly facts: SegmentFacts;
}
