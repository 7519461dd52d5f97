/** Packages one subtitle track: its segments and parts are those of the track that leads, with the cues that are shown meanwhile. */

import type { Span } from '../../../../delivery/outlet/messages.ts';
import type { Packet } from '../../../../media/packet.ts';
import type { SubtitleTrack } from '../../../../media/track.ts';
import type { LlhlsUpdate } from '../../wire/fmp4/update.ts';
import { WaitingCues } from '../waiting-cues.ts';
import type { CutSchedule } from './cut-schedule.ts';

/** What a subtitle track needs of its stream. */
export interface SubtitlePackagingContext {
  readonly schedule: CutSchedule;
  /** ms added to all times in the fragments of the media. */
  offset(): number;
  store(chunks: readonly Uint8Array[]): readonly Span[];
  emit(update: LlhlsUpdate): void;
}

type SegmentOpen = Extract<LlhlsUpdate, { type: 'segment-open' }>;
type Part = Extract<LlhlsUpdate, { type: 'part' }>;

interface OpenSegment {
  readonly msn: number;
  readonly isGap: boolean;
  /** Media time, ms. */
  readonly start: number;
  /** Where the next part begins, ms. */
  end: number;
  parts: number;
}

/** Tells what there is to serve within `follow`. It has nothing to close: what it has stored is given back by the window of the stream. */
export class SubtitlePackager {
  track: SubtitleTrack;
  readonly #context: SubtitlePackagingContext;
  readonly #cues: WaitingCues;
  #open: OpenSegment | null = null;
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

  /** The length of parts is that of the track that leads, which may have told it before this track was there. */
  setPartTarget(seconds: number): void {
    if (seconds === this.#partTarget || seconds === 0) return;
    this.#partTarget = seconds;
    this.#context.emit({ type: 'part-target', trackId: this.track.id, seconds });
  }

  /** Something has become of the track that leads. */
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
    // Another track leads, whose segment was on before.
    if (msn <= this.#msn) return;
    if (this.#open !== null) this.#close((this.#open.end - this.#open.start) / 1000);
    const start = this.#context.schedule.cut(msn)?.time ?? 0;
    // Numbers have no holes: what nobody told of is not there.
    for (let missed = this.#msn + 1; this.#msn >= 0 && missed < msn; missed += 1) this.#passMissed(missed, start);
    this.#msn = msn;
    this.#open = { msn, isGap: gap, start, end: start, parts: 0 };
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
    const start = open.end;
    open.end += duration * 1000;
    const spans = this.#context.store([this.#cues.write(start, open.end)]);
    const { id: trackId } = this.track;
    this.#context.emit({ type: 'part', trackId, msn, part: open.parts, duration, independent: true, likelyLast, spans });
    open.parts += 1;
  }

  #close(duration: number): void {
    const open = this.#open;
    if (open === null) return;
    this.#open = null;
    const { id: trackId } = this.track;
    if (open.isGap) {
      this.#context.emit({ type: 'segment-close', trackId, duration });
      return;
    }
    const whole = this.#context.store([this.#cues.write(open.start, open.start + duration * 1000)]);
    this.#cues.forget(open.start + duration * 1000);
    this.#context.emit({ type: 'segment-close', trackId, duration, whole });
  }
}
