/** Lets a track follow the segment boundaries of another server. */
import type { SegmentMark } from '../../../../media/segment-mark.ts';
import type { CutSchedule } from './cut-schedule.ts';
import type { TimedSample } from './sample-timeline.ts';

/** Marks of the other server may be late by this many seconds. */
const TOLERANCE = 1;

/** For the leading track. Needs no closing. */
export class SegmentGuide {
  readonly #schedule: CutSchedule;
  #earliest: number | null = null;
  /** Number of the segment that begins behind a hole. */
  #numbered: number | null = null;

  constructor(schedule: CutSchedule) {
    this.#schedule = schedule;
  }

  /** The presentation time, ms, before which no segment begins; null if unknown. */
  get earliest(): number | null {
    return this.#schedule.guided ? this.#earliest : null;
  }

  /** Whether a segment begins with `sample`, which ends the open one at `end` of at most `max` seconds; null: not guided. */
  cutsBefore({ mark }: TimedSample, end: number, max: number): boolean | null {
    if (mark !== undefined) return true;
    // The marks have ceased: the track continues by its own rules.
    if (this.#schedule.guided && end > max + TOLERANCE) this.#schedule.leaveGuide();
    return this.#schedule.guided ? false : null;
  }

  /** Number of segments that the other server had before `mark` and this one misses; null: unknown. */
  missedBefore(mark: SegmentMark | undefined, msn: number): number | null {
    if (mark === undefined) return null;
    this.#numbered = this.#schedule.follow(mark, msn + 1);
    return this.#numbered - msn - 1;
  }

  /** Number of the segment that begins with `mark`, behind segment `msn`; that is negative before the first. */
  number(mark: SegmentMark, msn: number): number {
    const followed = this.#numbered ?? this.#schedule.follow(mark, msn < 0 ? null : msn + 1);
    this.#numbered = null;
    // Missed segments leave a hole, for which gaps have been listed: numbers are consecutive.
    return msn < 0 ? followed : msn + 1;
  }

  /** Segment `msn` has begun with `mark` at `time`, ms. */
  take({ time, expected, earliest }: SegmentMark, msn: number, at: number): void {
    this.#earliest = earliest + at - time;
    if (expected !== null) this.#schedule.expect(msn + 1, expected + at - time);
  }
}
