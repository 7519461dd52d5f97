/** Packages one subtitle track in the segments and parts of the leading track, each with the cues shown in its time. */

import type { Span } from '../../../../delivery/feed/messages.ts';
import type { Packet } from '../../../../media/packet.ts';
import type { SubtitleTrack } from '../../../../media/track.ts';
import type { LlhlsUpdate } from '../../wire/fmp4/update.ts';
import { WaitingCues } from '../waiting-cues.ts';
import type { CutSchedule } from './cut-schedule.ts';

/** A stream as its subtitle tracks see it. */
export interface SubtitlePackagingContext {
  readonly schedule: CutSchedule;
  /** ms added to all times in the fragments of the media. */
  offset(): number;
  store(chunks: readonly Uint8Array[]): readonly Span[];
  emit(update: LlhlsUpdate): void;
}

type SegmentOpen = Extract<LlhlsUpdate, { type: 'segment-open' }>;
type Part = Extract<LlhlsUpdate, { type: 'part' }>;

/**
 * The parts of a segment may be shorter than the segment by this, ms: the next segment lists the difference. More gets a part of its own.
 */
const MAX_CARRIED = 5;
/** Error of sums of durations, ms. */
const ROUNDING = 1e-6;

/** Times are media times, ms. */
interface OpenSegment {
  readonly msn: number;
  readonly isGap: boolean;
  /** Start in the leading track, and the end of the media that the leading track has listed. */
  readonly start: number;
  led: number;
  /** Start and end as this track lists them. */
  readonly from: number;
  end: number;
  parts: number;
}

/**
 * Adds its changes to the update within `follow`. Needs no closing: the window of the stream releases the stored bytes.
 *
 * The parts of a segment are never shorter than the segment: hls.js has no media to tell how much of a segment it has, so it adds up parts
 * and would wait for the rest forever. The leading track lists the last part before its length is known.
 */
export class SubtitlePackager {
  track: SubtitleTrack;
  readonly #context: SubtitlePackagingContext;
  readonly #cues: WaitingCues;
  #open: OpenSegment | null = null;
  /** Listed end of the last segment, ms. */
  #listed = Number.NEGATIVE_INFINITY;
  /** Number of the last segment; -1 before the first. */
  #msn = -1;
  #partTarget = 0;

  constructor(track: SubtitleTrack, context: SubtitlePackagingContext) {
    this.track = track;
    this.#context = context;
    this.#cues = new WaitingCues(() => context.offset());
    context.emit({ type: 'track', trackId: track.id, mediaType: 'subtitle' });
  }

  /** Cues that will not be shown. */
  get dropped(): number {
    return this.#cues.dropped;
  }

  /** Takes a cue. */
  push(packet: Packet): void {
    this.#cues.push(packet);
  }

  /** Parts are as long as those of the leading track, whose PART-TARGET may be older than this track. */
  setPartTarget(seconds: number): void {
    if (seconds === this.#partTarget || seconds === 0) return;
    this.#partTarget = seconds;
    this.#context.emit({ type: 'part-target', trackId: this.track.id, seconds });
  }

  /** Follows an update of the leading track. */
  follow(update: LlhlsUpdate): void {
    switch (update.type) {
      case 'part-target':
        this.setPartTarget(update.seconds);
        return;
      case 'segment-open':
        this.#openSegment(update);
        return;
      case 'part':
        this.#addPart(update);
        return;
      case 'segment-close':
        this.#close(update.duration);
        return;
      default:
    }
  }

  #openSegment({ msn, startTime, discontinuity, gap, tags }: SegmentOpen): void {
    // A track leads whose segment began before.
    if (msn <= this.#msn) return;
    if (this.#open !== null) this.#close((this.#open.led - this.#open.start) / 1000);
    const start = this.#context.schedule.cut(msn)?.time ?? 0;
    // Numbers have no gaps: segments that were never announced are empty.
    for (let missed = this.#msn + 1; this.#msn >= 0 && missed < msn; missed += 1) this.#passMissed(missed, start);
    this.#msn = msn;
    const behind = start - this.#listed;
    const from = behind > 0 && behind <= MAX_CARRIED ? this.#listed : start;
    this.#open = { msn, isGap: gap, start, led: start, from, end: from, parts: 0 };
    this.#context.emit({ type: 'segment-open', trackId: this.track.id, msn, startTime, generation: 0, discontinuity, gap, tags });
  }

  #passMissed(msn: number, next: number): void {
    const { schedule, emit } = this.#context;
    const { time = next, epoch = 0 } = schedule.cut(msn) ?? {};
    const end = schedule.cut(msn + 1)?.time ?? next;
    const { id: trackId } = this.track;
    const described = { startTime: epoch + time, generation: 0, discontinuity: false, gap: true, tags: '' };
    emit({ type: 'segment-open', trackId, msn, ...described });
    emit({ type: 'segment-close', trackId, duration: Math.max(0, end - time) / 1000 });
  }

  #addPart({ msn, duration, likelyLast }: Part): void {
    const open = this.#open;
    if (open === null || open.msn !== msn) return;
    open.led += duration * 1000;
    this.#listUpTo(open, Math.min(open.led, open.end + this.#longestPart), likelyLast);
  }

  get #longestPart(): number {
    return this.#partTarget > 0 ? this.#partTarget * 1000 : Number.POSITIVE_INFINITY;
  }

  #listUpTo(open: OpenSegment, end: number, likelyLast: boolean): void {
    const start = open.end;
    if (end - start <= ROUNDING) return;
    open.end = end;
    const spans = this.#context.store([this.#cues.write(start, end)]);
    const described = { msn: open.msn, part: open.parts, duration: (end - start) / 1000, independent: true, likelyLast };
    this.#context.emit({ type: 'part', trackId: this.track.id, ...described, spans });
    open.parts += 1;
  }

  #close(duration: number): void {
    const open = this.#open;
    if (open === null) return;
    this.#open = null;
    const { id: trackId } = this.track;
    const end = open.start + duration * 1000;
    this.#listed = end;
    if (open.isGap) {
      this.#context.emit({ type: 'segment-close', trackId, duration });
      return;
    }
    while (end - open.end > MAX_CARRIED) this.#listUpTo(open, Math.min(end, open.end + this.#longestPart), true);
    if (end - open.end > ROUNDING) this.#listed = open.end;
    const isLed = open.from === open.start && this.#listed === end;
    const whole = this.#context.store([this.#cues.write(open.from, this.#listed)]);
    this.#cues.forget(this.#listed);
    this.#context.emit({ type: 'segment-close', trackId, duration: isLed ? duration : (this.#listed - open.from) / 1000, whole });
  }
}
