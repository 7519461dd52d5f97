/** The segments of one subtitle track in HLS over MPEG-TS: with the boundaries of the variant it follows, and the cues shown in each. */
import { TIME_OFFSET } from '../../../../containers/mpegts/ts-muxer.ts';
import type { Span } from '../../../../delivery/feed/messages.ts';
import type { Packet } from '../../../../media/packet.ts';
import type { SubtitleTrack } from '../../../../media/track.ts';
import { WaitingCues } from '../waiting-cues.ts';
import type { FinishedSegment } from './ts-segmenter.ts';
import type { VariantSegments } from './variant-segments.ts';

const OFFSET_MS = TIME_OFFSET / 90;

/** Stored segments are in `kept`, which is released with its window. */
export class SubtitleSegments {
  track: SubtitleTrack;
  readonly kept: VariantSegments;
  readonly #cues = new WaitingCues(() => OFFSET_MS);
  /** Null before the first segment. */
  #nextNumber: number | null = null;

  constructor(track: SubtitleTrack, kept: VariantSegments) {
    this.track = track;
    this.kept = kept;
  }

  /** Cues that will not be shown. */
  get dropped(): number {
    return this.#cues.dropped;
  }

  /** Takes a cue. */
  push(packet: Packet): void {
    this.#cues.push(packet);
  }

  /** The segment for the time of `lead`. */
  beside(lead: FinishedSegment, store: (chunks: readonly Uint8Array[]) => readonly Span[]): FinishedSegment {
    const end = lead.start + lead.duration * 1000;
    const number = this.#nextNumber ?? lead.number;
    this.#nextNumber = number + 1;
    const spans = store([this.#cues.write(lead.start, end)]);
    this.#cues.forget(end);
    return { ...lead, number, spans };
  }
}
