/** Describes the segments of a stream to other servers, so that they number them alike. */
import { randomUUID } from 'node:crypto';
import type { SegmentFacts, SegmentMark } from '../../../../media/segment-mark.ts';
import type { CutSchedule } from './cut-schedule.ts';

/** A segment of a track when it begins. */
export interface BegunSegment {
  readonly msn: number;
  /** Wall clock of its first frame, ms since the epoch. */
  readonly startTime: number;
  readonly discontinuity: boolean;
  readonly gap: boolean;
  /** Whole lines of playlists before it. */
  readonly tags: string;
}

/** For one stream, by its leading track. Needs no closing. */
export class SegmentNumbering {
  /** Discontinuities listed so far. */
  discontinuities = 0;
  readonly #run = randomUUID();
  readonly #schedule: CutSchedule;
  #begun: BegunSegment | null = null;

  constructor(schedule: CutSchedule) {
    this.#schedule = schedule;
  }

  /** The leading track has begun a segment. */
  began(segment: BegunSegment): void {
    if (segment.discontinuity) this.discontinuities += 1;
    this.#begun = segment.gap ? null : segment;
  }

  /** The segment that has begun since this was asked last; null: none. */
  takeBegun(): BegunSegment | null {
    const begun = this.#begun;
    this.#begun = null;
    return begun;
  }

  /** `earliest`: before this presentation time, ms, no other segment begins. */
  markOf({ msn, startTime, discontinuity, tags }: BegunSegment, earliest: number, facts: SegmentFacts): SegmentMark {
    return {
      run: this.#run,
      msn,
      time: this.#schedule.cut(msn)?.time ?? 0,
      startTime,
      discontinuity,
      discontinuities: this.discontinuities - (discontinuity ? 1 : 0),
      tags,
      expected: this.#schedule.expected(msn + 1),
      earliest,
      facts,
    };
  }
}
