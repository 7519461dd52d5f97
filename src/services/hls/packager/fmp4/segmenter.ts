/** Cuts one track into segments and parts, by times only; a sink stores the bytes. */

import type { Cut, CutSchedule } from './cut-schedule.ts';
import { PartTarget } from './part-target.ts';
import { frameDurations, type TimedSample } from './sample-timeline.ts';
import { SegmentGuide } from './segment-guide.ts';
import type { SegmentLimits } from './segment-limits.ts';
import type { CutPart, SegmentSink } from './segment-sink.ts';

/** `chunkDuration` in seconds, `jitter` in ticks of `timescale`. Schedule and limits are shared by all tracks of the stream. */
export interface SegmenterOptions {
  readonly video: boolean;
  readonly chunkDuration: number;
  readonly timescale: number;
  readonly jitter: number;
  readonly schedule: CutSchedule;
  readonly limits: SegmentLimits;
  readonly sink: SegmentSink;
  /** The longest part of another server, ticks; 0 or absent: none. */
  readonly partTicks?: number;
}

/** A frame longer than this, seconds, is a pause of the source and irrelevant for its frame rate. */
const MAX_FRAME = 2;
/** A hole this long, seconds, is listed as such when the segment cannot hold it. */
const MIN_GAP = 1;
/** A hole this long, seconds, before a new configuration is more than the rounding and cutting of frames at a seam. */
const MAX_SEAM = 0.1;
/** A track this many seconds behind the others is away: a transcoder is never allowed to be that late. */
const AWAY = 8;
/** Limits in bytes, because parts and segments of a source whose clock hardly advances must not grow without end. */
const MAX_PART_BYTES = 16 * 1024 * 1024;
const MAX_PART_SAMPLES = 4096;
/** Ten seconds of 100 Mbit/s: beyond it a segment ends at the next frame, keyframe or not. */
const MAX_SEGMENT_BYTES = 128 * 1024 * 1024;
/** Keyframes are regular after this many equal intervals in a row. */
const EVEN_GOPS = 3;
/** Maximum of frames to look ahead for the end of a part. */
const MAX_LOOKAHEAD = 128;

/** Calls its sink within `push`, `passPause` and `flush`; has no timer and needs no closing. */
export class Segmenter {
  readonly #video: boolean;
  readonly #schedule: CutSchedule;
  readonly #limits: SegmentLimits;
  readonly #sink: SegmentSink;
  #timescale: number;
  #target: PartTarget;
  #msn = -1;
  #open = false;
  #segments = 0;
  #segmentStart = 0;
  #segmentTime = 0;
  #part = 0;
  #partStart = 0;
  #samples: TimedSample[] = [];
  /** Bytes of the frames in `#samples`; those of all frames of the segment are in `#segmentBytes`. */
  #partBytes = 0;
  #segmentBytes = 0;
  /** End of the listed media, ticks; null before the first part and after a change of timescale. */
  #listedEnd: number | null = null;
  /** End of the last sample, ticks. */
  #mediaEnd = 0;
  #lastKey: number | null = null;
  #gop: number | null = null;
  /** Keyframe intervals in a row that differ by less than half a frame. */
  #evenGops = 0;
  #frame = 0;
  /** End of the gaps that were listed because the track is away, ms of presentation; null while it is not. */
  #awayUntil: number | null = null;
  readonly #guide: SegmentGuide;
  /**
   * This track lists a discontinuity at its next segment, or has just done so: the other tracks' discontinuity after it is not its own.
   */
  #alone: 'next' | 'was' | null = null;
  /** This track proposes cuts. */
  leads = false;
  /** Frames after a gap up to the next keyframe, which players could not show. */
  discarded = 0;

  constructor(options: SegmenterOptions) {
    this.#video = options.video;
    this.#schedule = options.schedule;
    this.#limits = options.limits;
    this.#sink = options.sink;
    this.#guide = new SegmentGuide(options.schedule);
    this.#timescale = options.timescale;
    this.#target = new PartTarget({ ...options, segmentDuration: options.limits.segmentDuration });
    this.#target.take(options.partTicks ?? 0);
    if (this.#target.known) this.#sink.partTargetChosen(this.#target.seconds);
  }

  /** Number of the current segment, -1 before the first. */
  get msn(): number {
    return this.#msn;
  }

  /** Last keyframe interval in seconds; null when unknown. Audio has none. */
  get gop(): number | null {
    return this.#gop;
  }

  /** The longest that a part may be, ticks; 0 before that is known. */
  get partTicks(): number {
    return this.#target.ticks;
  }

  /** The earliest presentation time (ms) at which this track may begin its next segment. */
  get earliestCut(): number {
    if (this.#guide.earliest !== null) return this.#guide.earliest;
    const segmentDuration = this.#wantedDuration;
    const max = this.#gop === null ? 0 : this.#limits.leaderMaxFor(this.#gop);
    const reach = this.#gop !== null && this.#gop <= max ? Math.min(segmentDuration, max - this.#gop) : segmentDuration;
    return Math.min(this.#segmentTime + (reach - this.#frame / this.#timescale) * 1000, this.#schedule.markers.next);
  }

  /** The decoding time, ms, before which no frame closes a part or a segment, if frames come at the pace of the last one. */
  get nextClose(): number {
    if (!this.#open || !this.#target.known || this.#frame <= 0) return Number.NEGATIVE_INFINITY;
    return (Math.min(this.#fillsAt, this.#cutsFrom) / this.#timescale) * 1000;
  }

  /** Takes the next sample in decoding order. */
  push(sample: TimedSample): void {
    if (this.#awayUntil !== null && !this.#comesBack(sample, this.#awayUntil)) {
      this.discarded += 1;
      return;
    }
    const leavesGap = this.#open && this.#leavesGap(sample);
    if (leavesGap && !sample.keyframe) {
      this.discarded += 1;
      return;
    }
    if (this.#video && sample.keyframe) this.#measureGop(sample.dts, leavesGap);
    this.#frame = sample.duration;
    if (!this.#open) this.#openSegment(sample);
    else if (leavesGap || this.#cutsBefore(sample)) {
      if (leavesGap) this.#passHole(sample);
      else this.#closeSegment(sample);
      this.#openSegment(sample);
    } else if (this.#samples.length > 0 && this.#isPartFull(sample.dts, sample.duration)) {
      this.#closeFullPart(sample.dts);
    } else if (this.#isPartLarge(sample)) {
      // The part closes by its size, so it does not decide PART-TARGET.
      this.#closePart(sample.dts);
    }
    this.#append(sample);
    // The next frame is expected to last as long as this one: the part need not wait for it.
    if (this.#isPartFull(sample.dts + sample.duration, sample.duration)) this.#closeFullPart(null);
  }

  /**
   * Other tracks continue: segments that they have finished and this track missed are listed as gaps, although it may return. Otherwise
   * requests for its playlist would wait until players give up.
   */
  passPause(): void {
    for (let cut = this.#missedCut(); cut !== null; cut = this.#missedCut()) {
      const from = this.#pauseStart;
      if (this.#open) {
        this.#closePart(null);
        this.#endSegment((from - this.#segmentTime) / 1000);
        this.#listedEnd = null;
      }
      const end = Math.min(cut.time, from + this.#limits.followerMax * 1000);
      this.#passGaps(from, end, 1);
      this.#awayUntil = end;
    }
  }

  /**
   * The configuration of the track changed: a new segment begins after a discontinuity. `first` is its first sample, still on the old
   * timeline: the last frame before it lasts until then, so that the listed durations equal the media.
   */
  changeTimeline(timescale: number, jitter: number, first: TimedSample): void {
    const isHole = this.#open && this.#holeBefore(first) > MAX_SEAM;
    if (this.#open) this.#closeSegment(first, first.dts + first.compositionOffset);
    // Tracks that change together, because their source does, share one discontinuity. If it comes later, only the init segment changes
    // here, which is allowed (RFC 8216 §4.3.2.3, a SHOULD), but a gap must be signalled.
    if (!this.#schedule.addDiscontinuity(this.#msn + 1) && isHole) this.#alone = 'next';
    this.#target = this.#target.rescale(timescale, jitter);
    this.#timescale = timescale;
    this.#listedEnd = null;
    this.#lastKey = null;
  }

  /** Closes the part and the segment that are open. */
  flush(): void {
    if (this.#open) this.#closeSegment(null);
  }

  #measureGop(dts: number, paused: boolean): void {
    if (this.#lastKey !== null && !paused) {
      const gop = (dts - this.#lastKey) / this.#timescale;
      this.#evenGops = Math.abs(gop - (this.#gop ?? 0)) < this.#halfFrame ? this.#evenGops + 1 : 1;
      this.#gop = gop;
    }
    this.#lastKey = dts;
  }

  #isPartLarge({ data }: TimedSample): boolean {
    const { length } = this.#samples;
    return length >= MAX_PART_SAMPLES || (length > 0 && this.#partBytes + data.length > MAX_PART_BYTES);
  }

  #cutsBefore(sample: TimedSample): boolean {
    if (this.#segmentBytes + sample.data.length > MAX_SEGMENT_BYTES) return true;
    const seconds = (sample.dts - this.#segmentStart) / this.#timescale;
    const end = seconds + sample.duration / this.#timescale;
    const guided = this.leads ? this.#guide.cutsBefore(sample, end, this.#limits.leaderMax) : null;
    if (guided !== null) return guided;
    const max = this.leads ? this.#limits.leaderMax : this.#limits.followerMax;
    if (end > max) return true;
    if (!sample.keyframe) return false;
    const cut = this.#schedule.cut(this.#msn + 1);
    if (cut !== null) return sample.time >= cut.time - this.#halfFrame * 1000;
    return this.leads && (this.#wantsCut(seconds) || (seconds > 0 && sample.time >= this.#schedule.markers.next));
  }

  /** A cut `seconds` into the segment is due: it is long enough, or the next keyframe would come too late. */
  #wantsCut(seconds: number): boolean {
    if (seconds + this.#halfFrame >= this.#wantedDuration) return true;
    if (this.#gop === null || seconds <= 0) return false;
    const max = this.#limits.leaderMaxFor(this.#gop);
    return this.#gop <= max && seconds + this.#gop > max;
  }

  /** There is a gap before `sample` that the segment cannot hold, or that other tracks have cut already. */
  #leavesGap(sample: TimedSample): boolean {
    if (this.#holeBefore(sample) <= MIN_GAP) return false;
    const cut = this.#schedule.cut(this.#msn + 1);
    if (cut !== null) return sample.time - cut.time > MIN_GAP * 1000;
    return (sample.time - this.#segmentTime) / 1000 > this.#limits.followerMax;
  }

  /** The end of the next segment, if all of it has passed in other tracks while this track was away. */
  #missedCut(): Cut | null {
    const { last } = this.#schedule;
    if (last === null || (!this.#open && this.#awayUntil === null)) return null;
    const from = this.#pauseStart;
    if (this.#awayUntil === null && last.time - from < AWAY * 1000) return null;
    const cut = this.#schedule.cut(this.#msn + 2);
    // Segments may be shorter than a gap among frames.
    const least = Math.min(MIN_GAP, this.#limits.segmentDuration / 2);
    return cut !== null && cut.time - from > least * 1000 ? cut : null;
  }

  /** End of the media of this track, ms of presentation. */
  get #pauseStart(): number {
    return this.#awayUntil ?? this.#segmentTime + ((this.#mediaEnd - this.#segmentStart) / this.#timescale) * 1000;
  }

  /** False for a sample within a listed gap, or a sample that cannot be decoded after it. */
  #comesBack(sample: TimedSample, awayUntil: number): boolean {
    if (sample.time < awayUntil || !sample.keyframe) return false;
    this.#awayUntil = null;
    this.#lastKey = null;
    if (sample.time - awayUntil > MIN_GAP * 1000) this.#passGapsUntil(awayUntil, sample.time);
    return true;
  }

  /** Seconds without media before `sample`. */
  #holeBefore(sample: TimedSample): number {
    return (sample.dts - this.#mediaEnd) / this.#timescale;
  }

  /**
   * Lists the missing media up to `sample` as gaps: playlists must not run behind their media, and numbers must mean the same time in all
   * tracks. Gaps begin at the end of the media, because hls.js stops where nothing is listed.
   */
  #passHole(sample: TimedSample): void {
    const end = sample.time - this.#holeBefore(sample) * 1000;
    this.#closePart(null);
    this.#endSegment((end - this.#segmentTime) / 1000);
    this.#listedEnd = null;
    const missed = this.leads ? this.#guide.missedBefore(sample.mark, this.#msn) : null;
    if (missed === null) this.#passGapsUntil(end, sample.time);
    else this.#passGaps(end, sample.time, missed);
  }

  #passGapsUntil(from: number, to: number): void {
    if (this.leads) this.#leadThroughHole(from, to);
    else this.#followThroughHole(from, to);
  }

  /** If a follower continued alone, the gaps get its numbers; its present segment ends where the next gap begins. */
  #leadThroughHole(from: number, to: number): void {
    const alone = this.#schedule.last;
    let start = from;
    if (alone !== null && alone.msn > this.#msn) {
      const count = alone.msn - this.#msn;
      const longest = Math.min(from + count * this.#limits.followerMax * 1000, alone.time + this.#limits.segmentDuration * 1000, to);
      start = to - longest < MIN_GAP * 1000 ? to : Math.max(longest, alone.time);
      this.#passGaps(from, start, count);
    }
    this.#passGaps(start, to, Math.ceil((to - start) / 1000 / this.#limits.segmentDuration));
  }

  /** Follows the known cuts of the leader; the next cut is decided by the leader. */
  #followThroughHole(from: number, to: number): void {
    let start = from;
    for (let cut = this.#schedule.cut(this.#msn + 2); cut !== null && cut.time <= to; cut = this.#schedule.cut(this.#msn + 2)) {
      this.#passGaps(start, cut.time, 1);
      start = cut.time;
    }
    if (this.#schedule.cut(this.#msn + 2) !== null) return;
    this.#passGaps(start, to, Math.floor((to - start) / 1000 / this.#limits.segmentDuration));
  }

  /** Lists `count` gaps from `from` to `to` ms. */
  #passGaps(from: number, to: number, count: number): void {
    const duration = (to - from) / count;
    for (let n = 0; n < count; n += 1) {
      const time = from + n * duration;
      this.#msn += 1;
      this.#schedule.add(this.#msn, time);
      this.#sink.gapPassed({ msn: this.#msn, time, duration: duration / 1000, discontinuity: this.#takeDiscontinuity() });
    }
  }

  /** Whether a discontinuity precedes the current segment. */
  #takeDiscontinuity(): boolean {
    const shared = this.#schedule.cut(this.#msn)?.discontinuity === true;
    if (this.#alone === null) return shared;
    const isNow = this.#alone === 'next';
    if (isNow || shared) this.#alone = isNow ? 'was' : null;
    return isNow;
  }

  get #wantedDuration(): number {
    return this.#segments > 1 ? this.#limits.segmentDuration : this.#limits.firstSegmentDuration;
  }

  get #halfFrame(): number {
    return this.#frame / 2 / this.#timescale;
  }

  #openSegment(sample: TimedSample): void {
    const mark = this.leads ? sample.mark : undefined;
    if (mark === undefined) this.#msn = this.#msn < 0 ? this.#schedule.msnAt(sample.time) : this.#msn + 1;
    else this.#msn = this.#guide.number(mark, this.#msn);
    this.#schedule.add(this.#msn, sample.time, mark);
    this.#open = true;
    this.#segments += 1;
    this.#segmentStart = sample.dts;
    this.#segmentTime = sample.time;
    this.#segmentBytes = 0;
    // Errors of earlier durations do not matter: players add up the parts of each segment.
    this.#listedEnd = null;
    this.#part = 0;
    if (mark !== undefined) this.#guide.take(mark, this.#msn, sample.time);
    else if (this.leads) this.#expectEnd();
    const discontinuity = (this.#segments > 1 || this.#schedule.guided) && this.#takeDiscontinuity();
    this.#sink.segmentOpened({ msn: this.#msn, time: sample.time, discontinuity, independent: sample.keyframe });
  }

  /** Expected end of the segment: the first keyframe, at the present pace, that would cut it. */
  #expectEnd(): void {
    const wanted = this.#wantedDuration;
    const gop = this.#video ? this.#gop : wanted;
    if (gop === null || gop <= 0) return;
    let seconds = gop;
    while (seconds < wanted && !this.#wantsCut(seconds)) seconds += gop;
    this.#schedule.expect(this.#msn + 1, this.#segmentTime + seconds * 1000);
  }

  /** Time of the frame, ticks, that fills the open or next part. */
  get #fillsAt(): number {
    const start = this.#samples.length > 0 ? this.#partStart : this.#mediaEnd;
    let last = this.#mediaEnd;
    for (let n = 0; n < MAX_LOOKAHEAD && !this.#isPartFull(last + this.#frame, this.#frame, start); n += 1) last += this.#frame;
    return last;
  }

  /** The presentation time, ms, from which on a keyframe may end the segment that this track leads. */
  get #leaderCut(): number {
    const expected = this.#evenGops < EVEN_GOPS ? null : this.#schedule.expected(this.#msn + 1);
    if (expected === null) return this.earliestCut;
    return Math.min(expected - this.#halfFrame * 1000, this.#schedule.markers.next);
  }

  /** Earliest time, ticks, of a frame that ends the segment. */
  get #cutsFrom(): number {
    const cut = this.#schedule.cut(this.#msn + 1)?.time;
    if (cut === undefined && !this.leads) return Number.POSITIVE_INFINITY;
    const time = cut === undefined ? this.#leaderCut : cut - this.#halfFrame * 1000;
    return this.#segmentStart + ((time - this.#segmentTime) / 1000) * this.#timescale;
  }

  /** `start`: where the part begins, if that is not known yet. */
  #isPartFull(end: number, next: number, start = this.#partStart): boolean {
    const expected = this.#schedule.expected(this.#msn + 1);
    const segment = expected === null ? null : ((expected - this.#segmentTime) / 1000) * this.#timescale;
    const remaining = segment === null ? null : segment - (start - this.#segmentStart);
    return this.#target.isFull(end - start, next, remaining);
  }

  #append(sample: TimedSample): void {
    if (this.#samples.length === 0) {
      const gap = this.#listedEnd === null || sample.dts - this.#listedEnd > sample.duration / 2;
      this.#partStart = gap ? sample.dts : (this.#listedEnd ?? sample.dts);
    }
    this.#samples.push(sample);
    this.#partBytes += sample.data.length;
    this.#segmentBytes += sample.data.length;
    this.#mediaEnd = sample.dts + sample.duration;
  }

  /** Closes a part because no further frame fits: the first such part decides PART-TARGET. */
  #closeFullPart(next: number | null): void {
    if (this.#samples.length > 0 && !this.#target.known) this.#learnTarget(next);
    this.#closePart(next);
  }

  #learnTarget(next: number | null): void {
    const durations = frameDurations(this.#samples);
    const last = durations.length - 1;
    // The duration of a single frame is known only from its successor, because frame rates declared by sources are often wrong.
    const alone = last === 0 && next !== null ? next - this.#partStart : 0;
    if (alone > 0 && alone <= MAX_FRAME * this.#timescale) durations[last] = alone;
    this.#target.learn(
      durations.reduce((sum, duration) => sum + duration, 0),
      durations,
    );
    this.#sink.partTargetChosen(this.#target.seconds);
  }

  /** `next`: dts after the part, if known; otherwise the last frame's own duration determines the end. Other options as in `CutPart`. */
  #closePart(next: number | null, { shownUntil = null, last = false }: Partial<Pick<CutPart, 'shownUntil' | 'last'>> = {}): void {
    const final = this.#samples.at(-1);
    if (final === undefined) return;
    const expected = final.dts + final.duration;
    const end = next !== null && next > final.dts && next - this.#partStart <= this.#target.limit ? next : expected;
    // A frame longer than the part limit is listed with the limit, because listed durations must not exceed PART-TARGET.
    const ticks = Math.max(1, Math.min(end - this.#partStart, this.#target.known ? this.#target.limit : end));
    const samples = this.#samples;
    this.#samples = [];
    this.#partBytes = 0;
    this.#listedEnd = this.#partStart + ticks;
    this.#sink.partClosed({
      msn: this.#msn,
      part: this.#part,
      duration: ticks / this.#timescale,
      independent: samples.some((sample) => sample.keyframe),
      likelyLast: this.#likelyEndsAt(end),
      last,
      samples,
      end,
      shownUntil,
    });
    this.#part += 1;
  }

  /** `next` is the first sample behind the segment; null when there is none of this configuration. */
  #closeSegment(next: TimedSample | null, shownUntil: number | null = null): void {
    this.#closePart(next?.dts ?? null, { shownUntil, last: true });
    // By presentation times, as date-times are: with B-frames and an uneven frame rate, decoding times differ.
    this.#endSegment(next === null ? null : (next.time - this.#segmentTime) / 1000);
  }

  /** `real`: seconds to the next segment, as far as known; too long ones are not listed. */
  #endSegment(real: number | null): void {
    this.#open = false;
    const listed = ((this.#listedEnd ?? this.#segmentStart) - this.#segmentStart) / this.#timescale;
    this.#sink.segmentClosed(real !== null && real > 0 && real <= this.#limits.followerMax ? real : listed);
  }

  /** The segment is expected to end within half a frame of `end`. */
  #likelyEndsAt(end: number): boolean {
    const expected = this.#schedule.expected(this.#msn + 1);
    if (expected === null) return false;
    const seconds = (end - this.#segmentStart) / this.#timescale;
    return Math.abs((expected - this.#segmentTime) / 1000 - seconds) <= this.#halfFrame;
  }
}
