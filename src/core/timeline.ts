import type { Timebase } from '../media/timebase.ts';

/** A packet this far behind its track, seconds, is a jump of the source clock, not jitter. */
const MAX_BACKWARD_S = 0.5;
/** A packet this far ahead of its track, seconds, is a jump of the source clock, not a gap. */
const MAX_FORWARD_S = 10;
/**
 * A gap of this many seconds in all tracks at once is a pause of the source. It is closed, because players stop at gaps, most of them for
 * good. For sources that send frames seldom, `PAUSE_FRAMES` frames count instead.
 */
const MIN_PAUSE_S = 1;
const PAUSE_FRAMES = 3;
/**
 * Maximum distance in seconds between the presentation of a frame and that of frames decoded later; larger claims of a source are ignored.
 */
const MAX_REORDER_S = 1;
/** Tracks of one source may be this far from each other, seconds. */
const SKEW_S = 0.5;

/** Where one track stands on the timeline of its stream. */
export interface TimelineTrack {
  readonly timebase: Timebase;
  /** Added to source timestamps, ticks; null before the first packet. */
  offset: number | null;
  /** Ticks of the last packet placed, or null. */
  lastDts: number | null;
  /** Where the next packet is expected, ticks. */
  nextDts: number;
  /** End of the presented media, ticks. */
  shownTo: number;
}

/** A pause that was closed up, in seconds of the source. */
interface Pause {
  readonly from: number;
  readonly to: number;
  /** Offset of the timeline before the pause. */
  readonly offset: number;
}

/**
 * Puts the timestamps of all tracks of a stream on one timeline that starts at 0 and never jumps.
 * All tracks share one offset, so that they stay in step; when the clock of the source jumps, the
 * timeline continues behind the furthest track and the other tracks follow to the new offset.
 */
export class Timeline {
  readonly #tracks: TimelineTrack[] = [];
  readonly #keepsPauses: boolean;
  #steady: boolean;
  /** Seconds to add to source time; null before the first packet. */
  #offset: number | null = null;
  /** The last pause; null again when a track shows that there was none. */
  #pause: Pause | null = null;
  /** Start of the present source, and end of the presented media before it, seconds of the timeline. */
  #floor = 0;
  #shownFloor = 0;
  /** Jumps of the source's clock bridged so far. */
  jumps = 0;

  /**
   * `keepsPauses`: gaps that all tracks share remain, because the times of the source are wanted. `steady`: the clock of the source never
   * jumps, so every gap in its times is a gap in the media.
   */
  constructor({ keepsPauses = false, steady = false }: { keepsPauses?: boolean; steady?: boolean } = {}) {
    this.#keepsPauses = keepsPauses;
    this.#steady = steady;
  }

  /** Whether the clock of the present source never jumps. */
  set steady(steady: boolean) {
    this.#steady = steady;
  }

  addTrack(timebase: Timebase): TimelineTrack {
    const track: TimelineTrack = { timebase, offset: null, lastDts: null, nextDts: 0, shownTo: 0 };
    this.#tracks.push(track);
    return track;
  }

  removeTrack(track: TimelineTrack): void {
    const index = this.#tracks.indexOf(track);
    if (index >= 0) this.#tracks.splice(index, 1);
  }

  /** Where the furthest track ends, seconds of the timeline. */
  get end(): number {
    return this.#end;
  }

  /**
   * Converts a time of the source to a time of the timeline, both in seconds, whatever the distance; null before the source has begun.
   * Changes nothing.
   */
  timeOf(seconds: number): number | null {
    return this.#offset === null ? null : seconds + this.#offset;
  }

  /**
   * The earliest decoding time, seconds of the timeline, of the first packet of the present source, which is shown `composition` seconds
   * later: its presentation follows all media of the earlier source.
   */
  floorOf(composition: number): number {
    return Math.max(this.#floor, this.#shownFloor - composition);
  }

  /** Another source with another clock follows. `start` must follow. */
  changeSource(): void {
    this.#floor = Math.max(this.#floor, this.#end);
    this.#shownFloor = Math.max(this.#shownFloor, this.#shown);
    this.#pause = null;
    for (const track of this.#tracks) track.offset = null;
  }

  /** Makes `dts` (ticks of `track`) the time `at` seconds of the timeline. */
  start(track: TimelineTrack, dts: number, at: number): void {
    this.#offset = at - (dts * track.timebase.num) / track.timebase.den;
  }

  /**
   * Source ticks to ticks of the timeline, or null for a packet that lies before the start of the source.
   * `duration` is the expected length of the packet, ticks. A packet within `tolerance` ticks of its expected time is put exactly there
   * (coarse source timestamps of gapless audio). It is shown `composition` ticks after it is decoded.
   */
  place(track: TimelineTrack, dts: number, duration: number, tolerance = 0, composition = 0): number | null {
    if (this.#offset === null) this.start(track, dts, 0);
    if (this.#pause !== null) this.#doubtPause(this.#seconds(track, dts));
    const isFirst = track.offset === null;
    track.offset ??= this.#offsetTicks(track);
    let placed = dts + track.offset;
    if (isFirst) {
      // The floor comes from another track: a time that rounds to the same tick is not before it.
      const early = this.#floor - this.#seconds(track, placed + 1);
      if (early >= 0) {
        if (this.#steady || early <= MAX_FORWARD_S) {
          track.offset = null;
          return null;
        }
        placed = this.#jump(track, dts, composition);
      }
    } else if (!this.#steady && !this.#fits(track, placed, duration)) {
      const latest = this.#offsetTicks(track);
      if (latest !== track.offset && this.#fits(track, dts + latest, duration)) {
        track.offset = latest;
        placed = dts + latest;
      } else {
        placed = this.#plausible(track, placed) ? this.#bridge(track, dts, composition) : this.#jump(track, dts, composition);
      }
    }
    if (track.lastDts !== null) {
      if (Math.abs(placed - track.nextDts) <= tolerance) placed = track.nextDts;
      else if (placed <= track.lastDts) placed = track.lastDts + 1;
    }
    track.lastDts = placed;
    track.nextDts = placed + duration;
    track.shownTo = Math.max(track.shownTo, track.nextDts + Math.min(composition, this.#ticks(track, MAX_REORDER_S)));
    return placed;
  }

  #plausible(track: TimelineTrack, placed: number): boolean {
    const delta = this.#seconds(track, placed - (track.lastDts ?? placed));
    return delta >= -MAX_BACKWARD_S && delta <= MAX_FORWARD_S;
  }

  #fits(track: TimelineTrack, placed: number, duration: number): boolean {
    return this.#plausible(track, placed) && !this.#isPause(track, placed, duration);
  }

  /** No track has media in the gap before `placed`. */
  #isPause(track: TimelineTrack, placed: number, duration: number): boolean {
    if (this.#keepsPauses) return false;
    const shortest = Math.max(MIN_PAUSE_S, PAUSE_FRAMES * this.#seconds(track, duration));
    if (this.#seconds(track, placed - track.nextDts) <= shortest) return false;
    return this.#seconds(track, placed) - this.#end > shortest;
  }

  #bridge(track: TimelineTrack, dts: number, composition: number): number {
    const offset = this.#offset ?? 0;
    const from = this.#end - offset;
    const placed = this.#jump(track, dts, composition);
    this.#pause = { from, to: this.#seconds(track, dts), offset };
    return placed;
  }

  /** A track that continued during the pause, but arrives later, shows that only the other tracks paused: they get their gap back. */
  #doubtPause(seconds: number): void {
    const pause = this.#pause;
    if (pause === null || seconds <= pause.from + SKEW_S || seconds >= pause.to - SKEW_S) return;
    this.#pause = null;
    this.#offset = pause.offset;
    for (const track of this.#tracks) if (track.offset !== null) track.offset = this.#offsetTicks(track);
  }

  #jump(track: TimelineTrack, dts: number, composition: number): number {
    this.jumps += 1;
    this.#pause = null;
    // Frames from before the jump may still have to be shown.
    this.start(track, dts, Math.max(this.#end, this.#shown - this.#seconds(track, composition)));
    track.offset = this.#offsetTicks(track);
    return dts + track.offset;
  }

  get #end(): number {
    let end = 0;
    for (const track of this.#tracks) if (track.lastDts !== null) end = Math.max(end, this.#seconds(track, track.nextDts));
    return end;
  }

  get #shown(): number {
    let end = 0;
    for (const track of this.#tracks) if (track.lastDts !== null) end = Math.max(end, this.#seconds(track, track.shownTo));
    return end;
  }

  #offsetTicks(track: TimelineTrack): number {
    return this.#ticks(track, this.#offset ?? 0);
  }

  #ticks(track: TimelineTrack, seconds: number): number {
    return Math.round((seconds * track.timebase.den) / track.timebase.num);
  }

  #seconds(track: TimelineTrack, ticks: number): number {
    return (ticks * track.timebase.num) / track.timebase.den;
  }
}
