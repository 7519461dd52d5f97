/**
 * The beginnings of segments, for all tracks of a stream: the leading track proposes cuts and all other tracks follow, so that one media
 * sequence number means the same media time in every playlist.
 */

import type { SegmentMark } from '../../../../media/segment-mark.ts';
import { BreakMarkers } from '../break-markers.ts';
import { DateTimes } from '../date-times.ts';

/** The beginning of a segment. */
export interface Cut {
  readonly msn: number;
  /** Presentation time, ms. */
  readonly time: number;
  /** Wall clock of media time 0 when the cut was made, ms since the epoch. */
  readonly epoch: number;
  /** Playlist lines about markers before the segment; mostly ''. */
  readonly tags: string;
  /** All tracks list a discontinuity before it. */
  readonly discontinuity: boolean;
}

/** Maximum of missed segments of another server; after more, our numbers continue. */
const MAX_MISSED = 100;
/** Cuts older than this many segments are of no use to any track. */
const MAX_CUTS = 512;

/** One for each stream; drops cuts that no track can need. */
export class CutSchedule {
  readonly markers = new BreakMarkers();
  /** Number of the first segment; to be set before there is one. */
  firstMsn = 0;
  readonly #cuts: Cut[] = [];
  readonly #dates: DateTimes;
  #expected: { readonly msn: number; readonly time: number } | null = null;
  /** The next segment follows a discontinuity. */
  #discontinuous = false;
  /** The run whose marks are followed, and the difference between our numbers and its numbers. */
  #guide: { readonly run: string; readonly shift: number } | null = null;

  /** `epoch`: the wall clock of media time 0, ms since the epoch; it may jump. */
  constructor(epoch: () => number) {
    this.#dates = new DateTimes(epoch);
  }

  /**
   * A track with new decoder parameters continues with segment `msn`. Discontinuities have the same numbers in all tracks, because players
   * hold one track until the other has passed its discontinuity, too. If another track has already begun that segment, the discontinuity
   * moves to the next one, and the result is false.
   */
  addDiscontinuity(msn: number): boolean {
    const cut = this.cut(msn);
    if (cut?.discontinuity !== true) this.#discontinuous = true;
    return cut === null || cut.discontinuity;
  }

  /** Number of the segment that is current at `time`, for a track that begins then. */
  msnAt(time: number): number {
    for (let i = this.#cuts.length - 1; i >= 0; i--) {
      const cut = this.#cuts[i];
      if (cut !== undefined && cut.time <= time) return cut.msn;
    }
    // A frame belongs to the segment that begins in its first half.
    return this.#cuts[0]?.msn ?? this.firstMsn;
  }

  /** The newest beginning of a segment; null before the first. */
  get last(): Cut | null {
    return this.#cuts.at(-1) ?? null;
  }

  /** The beginning of segment `msn`, or null if there is no cut yet. */
  cut(msn: number): Cut | null {
    const first = this.#cuts[0];
    return first === undefined ? null : (this.#cuts[msn - first.msn] ?? null);
  }

  /** The leading track expects segment `msn` to begin at `time`. */
  expect(msn: number, time: number): void {
    this.#expected = { msn, time };
  }

  /** Expected start of segment `msn`; null if unknown. */
  expected(msn: number): number | null {
    return this.cut(msn)?.time ?? (this.#expected?.msn === msn ? this.#expected.time : null);
  }

  /** Another server determines where segments begin. */
  get guided(): boolean {
    return this.#guide !== null;
  }

  /** Ends guidance by another server. */
  leaveGuide(): void {
    this.#guide = null;
  }

  /** Number of the segment that begins with `mark`: `next` or more; `next` is null for the first segment. */
  follow({ run, msn }: SegmentMark, next: number | null): number {
    const known = this.#guide?.run === run ? msn + this.#guide.shift : null;
    const follows = next === null ? msn : (known ?? next);
    const isNear = next === null || (follows >= next && follows - next <= MAX_MISSED);
    const number = isNear ? follows : next;
    this.#guide = { run, shift: number - msn };
    return number;
  }

  /** Segment `msn` begins at `time`, with the `mark` of another server if guided. Ignored if it has a beginning already. */
  add(msn: number, time: number, mark?: SegmentMark): void {
    const last = this.#cuts.at(-1);
    if (last !== undefined && msn !== last.msn + 1) return;
    const discontinuity = this.#discontinuous || mark?.discontinuity === true;
    const epoch = mark === undefined ? this.#dates.epochAt(time, discontinuity) : mark.startTime - time;
    const own = this.markers.take(time, epoch + time);
    this.#cuts.push({ msn, time, epoch, tags: mark?.tags ?? own, discontinuity });
    this.#discontinuous = false;
    if (this.#cuts.length > MAX_CUTS) this.#cuts.shift();
  }
}
