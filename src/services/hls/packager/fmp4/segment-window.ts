/** Which segments stay: keeps the window of every track at its configured size and gives memory back. */
import type { Span } from '../../../../delivery/outlet/messages.ts';
import type { SegmentModel, TrackModel } from '../../view/fmp4/stream-model.ts';
import { EXTRA_SEGMENTS } from '../../wire/fmp4/settings.ts';
import type { LlhlsUpdate } from '../../wire/fmp4/update.ts';

/** What a window does with the segments that leave it. */
export interface SegmentWindow {
  /** Settles when the disk work handed over so far is done. */
  readonly settled: Promise<void>;
  /** A segment of `track` is complete. */
  segmentClosed(track: TrackModel): void;
  /** `track` left the stream: gives back all it holds. */
  forget(track: TrackModel): void;
  /** The stream is gone. Idempotent. */
  close(): void;
}

/** How a window tells views of segments that leave, and gives their memory back. */
export interface WindowContext {
  emit(update: LlhlsUpdate): void;
  release(spans: readonly Span[]): void;
  /** The stream holds too much memory, and `track` at least its part of it: it keeps one complete segment. */
  asksBack(track: TrackModel): boolean;
}

/** All spans of a segment, in order. */
export function segmentSpans(segment: SegmentModel): Span[] {
  return segment.parts.flatMap((part) => part.spans);
}

/** All spans of `track` that are in memory. */
export function heldSpans(track: TrackModel): Span[] {
  const retired = track.retired === null ? [] : [track.retired];
  return [...retired, ...track.segments].flatMap(segmentSpans);
}

/** Without DVR: segments beyond the count, or beyond the memory of the stream, are forgotten, one later than they leave the playlists. */
export class MemoryWindow implements SegmentWindow {
  /** Segments that left sooner than their number said, because of their bytes. */
  shortened = 0;
  readonly settled = Promise.resolve();
  readonly #listed: number;
  readonly #context: WindowContext;

  constructor(segmentCount: number, context: WindowContext) {
    this.#listed = segmentCount + EXTRA_SEGMENTS - 1;
    this.#context = context;
  }

  segmentClosed(track: TrackModel): void {
    while (track.completeCount > this.#listed || (track.completeCount > 1 && this.#context.asksBack(track))) {
      if (track.completeCount <= this.#listed) this.shortened += 1;
      if (track.retired !== null) this.#context.release(segmentSpans(track.retired));
      this.#context.emit({ type: 'retire', trackId: track.id });
    }
  }

  forget(track: TrackModel): void {
    this.#context.release(heldSpans(track));
  }

  close(): void {}
}
