/** Maximum lengths of segments, shared by all tracks of a stream. */

/** Rounded durations must not exceed TARGETDURATION (rfc8216bis §4.4.4.1): x.49 still rounds down, minus a margin for followers. */
const ROUNDING_ROOM = 0.4;
/** Followers may end a frame later than the track that leads. */
const FOLLOWER_ROOM = 0.48;
/** Keyframe intervals vary by a frame or two. */
const GOP_JITTER = 0.1;
/** TARGETDURATION when no second keyframe has come: covers the usual keyframe limits of encoders (8.33 s, 10 s). */
const LONG_GOP = 10;

/** All in seconds. TARGETDURATION is decided once, when the stream becomes playable, and never changes after that. */
export class SegmentLimits {
  /** Seconds. */
  readonly segmentDuration: number;
  /** A short first segment lets players start early: hls.js wants a complete one. */
  readonly firstSegmentDuration: number;
  #targetDuration: number | null = null;

  constructor(segmentDuration: number, firstSegmentDuration: number) {
    this.segmentDuration = segmentDuration;
    this.firstSegmentDuration = Math.min(segmentDuration, firstSegmentDuration);
  }

  /** Announced value, or null before the stream became playable. */
  get targetDuration(): number | null {
    return this.#targetDuration;
  }

  /** The longest a segment of the leading track may get, seconds. */
  get leaderMax(): number {
    return this.#base + ROUNDING_ROOM;
  }

  /** The same for keyframes every `gop` seconds, before TARGETDURATION is announced. */
  leaderMaxFor(gop: number): number {
    return (this.#targetDuration ?? this.#wanted(gop, 0)) + ROUNDING_ROOM;
  }

  get followerMax(): number {
    return this.#base + FOLLOWER_ROOM;
  }

  /** Takes the value that another server has announced. */
  take(targetDuration: number): number {
    this.#targetDuration = targetDuration;
    return targetDuration;
  }

  /** Fixes TARGETDURATION; `gop` is the keyframe interval in seconds, null when it is still unknown. */
  decide(gop: number | null, longestSegment: number): number {
    this.#targetDuration = this.#wanted(gop, longestSegment);
    return this.#targetDuration;
  }

  #wanted(gop: number | null, longestSegment: number): number {
    const wanted = Math.max(1, Math.round(this.segmentDuration), Math.round(longestSegment));
    return Math.max(wanted, gop === null ? LONG_GOP : Math.ceil(gop - ROUNDING_ROOM + GOP_JITTER));
  }

  get #base(): number {
    return this.#targetDuration ?? Math.max(Math.round(this.segmentDuration), LONG_GOP);
  }
}
