/** Segment numbering of a stream, as announced to other servers of the same stream. */

/** Facts about all segments of a stream; durations in seconds. */
export interface SegmentFacts {
  readonly segmentDuration: number;
  readonly chunkDuration: number;
  /** 0: not announced yet. */
  readonly targetDuration: number;
  readonly partHoldBack: number;
  /** ms added to the times of all tracks in their files. */
  readonly offset: number;
  readonly tracks: readonly SegmentedTrack[];
}

/** One track of a segmented stream. */
export interface SegmentedTrack {
  readonly id: number;
  /** The longest that a part may be, ticks of its file; 0: not known yet. */
  readonly partTicks: number;
  /** Number of its configuration. */
  readonly generation: number;
}

/** Where a segment begins: with the packet that carries the mark. Times in ms of the stream that is numbered. */
export interface SegmentMark {
  /** Unique for each server and run of a stream: numbers of different runs are unrelated. */
  readonly run: string;
  readonly msn: number;
  /** When its first frame is shown. */
  readonly time: number;
  /** The same as wall clock, ms since the epoch. */
  readonly startTime: number;
  /** A discontinuity is listed before it. */
  readonly discontinuity: boolean;
  /** Discontinuities of the stream before that. */
  readonly discontinuities: number;
  /** Whole lines of playlists before it. */
  readonly tags: string;
  /** When the next segment probably begins; null where that is not known. */
  readonly expected: number | null;
  /** Before this no other begins. */
  readonly earliest: number;
  readonly facts: SegmentFacts;
}
