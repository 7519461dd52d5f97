import type { Timebase } from '../media/timebase.ts';

/** A packet this far behind its track, seconds, is a jump of the source clock, not jitter. */
const MAX_BACKWARD_S = 0.5;
/** A packet this far ahead of its track, seconds, is a jump of the source clock, not a gap. */
const MAX_FORWARD_S = 10;

/** Where one track stands on the timeline of its stream. */
export interface TimelineTrack {
  readonly timebase: Timebase;
  /** Added to source timestamps, ticks; null before the first packet. */
  offset: number | null;
  /** Ticks of the last packet placed, or null. */
  lastDts: number | null;
  /** Where the next packet is expected, ticks. */
  nextDts: number;
}

/**
 * Puts the timestamps of all tracks of a stream on one timeline that starts at 0 and never jumps.
 * All tracks share one offset, so that they stay in step; when the clock of the source jumps, the
 * timeline continues behind the furthest track and the other tracks follow to the new offset.
 */
export class Timeline {
  readonly #tracks: TimelineTrack[] = [];
  /** Seconds to add to source time; null before the first packet. */
  #offset: number | null = null;
  /** Jumps of the source clock bridged so far. */
  jumps = 0;

  addTrack(timebase: Timebase): TimelineTrack {
    const track: TimelineTrack = { timebase, offset: null, lastDts: null, nextDts: 0 };
    this.#tracks.push(track);
    return track;
  }

  removeTrack(track: TimelineTrack): void {
    const index = this.#tracks.indexOf(track);
    if (index >= 0) this.#tracks.splice(index, 1);
  }

  /** Makes `dts` (ticks of `track`) the time `at` seconds of the timeline. */
  start(track: TimelineTrack, dts: number, at: number): void {
    this.#offset = at - (dts * track.timebase.num) / track.timebase.den;
  }

  /**
   * Source ticks to ticks of the timeline, or null for a packet that lies before the start.
   * `duration` is the expected length of the packet, ticks. A packet within `tolerance` ticks of
   * where it was expected is put exactly there (coarse source timestamps of gapless audio).
   */
  place(track: TimelineTrack, dts: number, duration: number, tolerance = 0): number | null {
    if (this.#offset === null) this.start(track, dts, 0);
    track.offset ??= this.#offsetTicks(track);
    let placed = dts + track.offset;
    if (track.lastDts === null) {
      if (placed < 0) {
        if (this.#seconds(track, placed) >= -MAX_FORWARD_S) {
          track.offset = null;
          return null;
        }
        placed = this.#jump(track, dts);
      }
    } else if (!this.#plausible(track, placed)) {
      const latest = this.#offsetTicks(track);
      if (latest !== track.offset && this.#plausible(track, dts + latest)) {
        track.offset = latest;
        placed = dts + latest;
      } else {
        placed = this.#jump(track, dts);
      }
    }
    if (track.lastDts !== null) {
      if (Math.abs(placed - track.nextDts) <= tolerance) placed = track.nextDts;
      else if (placed <= track.lastDts) placed = track.lastDts + 1;
    }
    track.lastDts = placed;
    track.nextDts = placed + duration;
    return placed;
  }

  #plausible(track: TimelineTrack, placed: number): boolean {
    const delta = this.#seconds(track, placed - (track.lastDts ?? placed));
    return delta >= -MAX_BACKWARD_S && delta <= MAX_FORWARD_S;
  }

  #jump(track: TimelineTrack, dts: number): number {
    this.jumps += 1;
    let end = 0;
    for (const other of this.#tracks) {
      if (other.lastDts !== null) end = Math.max(end, this.#seconds(other, other.nextDts));
    }
    this.start(track, dts, end);
    track.offset = this.#offsetTicks(track);
    return dts + track.offset;
  }

  #offsetTicks(track: TimelineTrack): number {
    return Math.round(((this.#offset ?? 0) * track.timebase.den) / track.timebase.num);
  }

  #seconds(track: TimelineTrack, ticks: number): number {
    return (ticks * track.timebase.num) / track.timebase.den;
  }
}
