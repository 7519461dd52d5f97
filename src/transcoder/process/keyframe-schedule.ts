/** Decides which frames become keyframes, so that all renditions of a stream have theirs at the same instants. */

/** Ticks of 1/90000 s that a frame may come early and still count as on time: RTMP rounds to milliseconds. */
const EARLY = 90;
/** Limit of instants that wait for their frames: there are never more breaks ahead. */
const MAX_FORCED = 64;

/** Fixed for an encode, so that a restarted encoder continues like the previous one. */
export interface KeyframePlan {
  /** Ticks of 1/90000 s between keyframes. */
  readonly interval: number;
  /**
   * Keyframes of the source restart the interval, so that encoded renditions can be switched with a bypassed one. Without it keyframes fall
   * on multiples of the interval, independent of the source and of encoder restarts.
   */
  readonly followSource: boolean;
}

/** One per encode: every encode with the same plan decides alike without knowing of the others. */
export class KeyframeSchedule {
  readonly #plan: KeyframePlan;
  #cell = Number.NaN;
  #anchor = Number.NaN;
  /** The last followed keyframe of the source, and its distance from the previous one. */
  #sourceAnchor = Number.NaN;
  #sourceInterval = Number.NaN;

  constructor(plan: KeyframePlan) {
    this.#plan = plan;
  }

  /** Whether the frame at `pts` must be a keyframe. Call once per frame, in order; always true for the first. */
  due(pts: number, sourceKeyframe: boolean): boolean {
    return this.#plan.followSource ? this.#dueBehindSource(pts, sourceKeyframe) : this.#dueOnGrid(pts);
  }

  #dueOnGrid(pts: number): boolean {
    const cell = Math.floor((pts + EARLY) / this.#plan.interval);
    const due = cell !== this.#cell;
    this.#cell = cell;
    return due;
  }

  #dueBehindSource(pts: number, sourceKeyframe: boolean): boolean {
    const { interval } = this.#plan;
    const sinceSource = pts - this.#sourceAnchor;
    // A source with many keyframes must not drive the encoders to as many.
    const followed = sourceKeyframe && !(sinceSource + EARLY < interval / 2);
    if (followed) {
      this.#sourceInterval = sinceSource;
      this.#sourceAnchor = pts;
    }
    const due = followed || (!(pts - this.#anchor + EARLY < interval) && !this.#sourceIsNear(pts));
    if (due) this.#anchor = pts;
    return due;
  }

  /** The source will probably send a keyframe soon, so one of our own just before it would be wasted. */
  #sourceIsNear(pts: number): boolean {
    const left = this.#sourceAnchor + this.#sourceInterval - pts;
    return left + EARLY > 0 && left < this.#plan.interval / 2;
  }
}

/** Times that need a keyframe regardless of the schedule, because segments are cut there. */
export class ForcedKeyframes {
  /** In order. */
  #instants: number[] = [];

  /** Forgets the earliest where there are too many. */
  add(pts: number): void {
    this.#instants.push(pts);
    this.#instants.sort((a, b) => a - b);
    if (this.#instants.length > MAX_FORCED) this.#instants.shift();
  }

  /** Whether the frame at `pts` is the first at or after such a time. Call once per frame, in order. */
  due(pts: number): boolean {
    const [first] = this.#instants;
    if (first === undefined || pts + EARLY < first) return false;
    this.#instants = this.#instants.filter((instant) => instant > pts + EARLY);
    return true;
  }
}

const SECOND = 90_000;

/**
 * Keyframe interval of an encode whose output has `framerate` frames per second, in ticks of 1/90000 s; one second if none is configured.
 */
export function keyframeInterval(
  encode: { readonly keyFrameInterval: number; readonly keyFrameIntervalType: string },
  framerate: number,
): number {
  const { keyFrameInterval, keyFrameIntervalType } = encode;
  if (keyFrameInterval <= 0) return SECOND;
  if (keyFrameIntervalType === 'time') return (keyFrameInterval * SECOND) / 1000;
  return (keyFrameInterval * SECOND) / framerate;
}
