/** The ends of segments, shared by all variants of a stream so that players can switch between variants. */

import { BreakMarkers } from '../break-markers.ts';
import { DateTimes } from '../date-times.ts';

/** A keyframe up to this long before the target duration counts as exact, because timebases round. */
const ROUNDING_MS = 10;
/** Part of the target duration by which keyframes of several renditions may miss each other and still belong together. */
const FOLLOW_TOLERANCE = 0.05;
/** Target durations for which a variant without video waits for the cut of the video variants. */
const TOLERANCE = 2;
/** Without any keyframe a segment is cut after this many target durations: memory has a limit. */
const MAX_TARGETS = 10;
/** Cuts remembered for variants that lag behind. */
const MAX_CUTS = 64;

/**
 * Cut `n` ends slot `n`. The first variant to reach a keyframe at or after the target duration sets the cut, all other
 * variants follow at their first keyframe around it. Times are milliseconds of media time.
 */
export class SlotSchedule {
  readonly markers = new BreakMarkers();
  readonly #targetMs: number;
  readonly #toleranceMs: number;
  readonly #cuts = new Map<number, number>();
  /** By slot. */
  readonly #tags = new Map<number, string>();
  /** Also for the date-times of variants. */
  readonly dates: DateTimes;
  #next = 0;

  /** `epoch`: the wall clock of media time 0, ms since the epoch; it may jump. */
  constructor(targetMs: number, epoch: () => number = () => 0) {
    this.dates = new DateTimes(epoch);
    this.#targetMs = targetMs;
    this.#toleranceMs = Math.max(ROUNDING_MS, targetMs * FOLLOW_TOLERANCE);
  }

  /** The slot that a variant beginning at `time` joins. */
  slotAt(time: number): number {
    let slot = this.#next;
    for (let cut = this.#cuts.get(slot - 1); cut !== undefined && time < cut - this.#toleranceMs; cut = this.#cuts.get(slot - 1)) slot -= 1;
    return slot;
  }

  /** Playlist lines about markers before the segment of `slot`. */
  tagsOf(slot: number): string {
    return this.#tags.get(slot) ?? '';
  }

  /**
   * Whether a segment of `slot` that began at `start` ends before the packet at `time`. `leads` is false for variants without video if
   * others have video.
   */
  cutsAt(packet: {
    readonly slot: number;
    readonly start: number;
    readonly time: number;
    readonly keyframe: boolean;
    readonly leads: boolean;
  }): boolean {
    const { slot, start, time, keyframe, leads } = packet;
    const length = time - start;
    if (length >= MAX_TARGETS * this.#targetMs) return true;
    if (!keyframe) return false;
    const cut = this.#cuts.get(slot);
    if (cut !== undefined) return time >= cut - this.#toleranceMs;
    if (slot < this.#next) return true; // so far behind that the cut is forgotten
    const isMarked = leads && length > 0 && time >= this.markers.next;
    if (!isMarked && length < (leads ? 1 : TOLERANCE) * this.#targetMs - ROUNDING_MS) return false;
    this.#record(slot, time);
    return true;
  }

  #record(slot: number, time: number): void {
    this.#cuts.set(slot, time);
    this.#cuts.delete(slot - MAX_CUTS);
    const tags = this.markers.take(time, this.dates.epochAt(time) + time);
    if (tags !== '') this.#tags.set(slot + 1, tags);
    this.#tags.delete(slot - MAX_CUTS);
    this.#next = slot + 1;
  }
}
