/** The segments of one LL-HLS track for its window: they are those of the model, which only updates change. */
import type { Span } from '../../../../delivery/feed/messages.ts';
import { MEDIA_EXTENSIONS } from '../../wire/fmp4/resource-name.ts';
import type { SegmentModel, TrackModel } from '../../wire/fmp4/stream-model.ts';
import type { LlhlsUpdate } from '../../wire/fmp4/update.ts';
import type { SegmentList, SegmentMemory } from '../segment-window.ts';

/** A stream as the segments of a track see it. */
export interface TrackSegmentsContext extends SegmentMemory {
  /** Changes the model and tells the views, with the next `flush` or at the end of a packet's turn. */
  emit(update: LlhlsUpdate): void;
  flush(): void;
}

/** Spans of a complete segment, in order. */
export function segmentSpans({ whole, parts }: SegmentModel): readonly Span[] {
  return whole ?? partSpans(parts);
}

/** Everything that is stored of a segment. */
function storedSpans({ whole, parts }: SegmentModel): readonly Span[] {
  return whole === null ? partSpans(parts) : [...whole, ...partSpans(parts)];
}

function partSpans(parts: SegmentModel['parts']): Span[] {
  return parts.flatMap(({ spans }) => spans);
}

/** A segment that has left the playlists stays until the next segment leaves: requests under way may want it. */
export class TrackSegments implements SegmentList<SegmentModel> {
  readonly #track: TrackModel;
  readonly #context: TrackSegmentsContext;

  constructor(track: TrackModel, context: TrackSegmentsContext) {
    this.#track = track;
    this.#context = context;
  }

  get segments(): readonly SegmentModel[] {
    return this.#track.segments;
  }

  asksBack(): boolean {
    return this.#context.asksBack(() => this.#all().flatMap(storedSpans));
  }

  read(segment: SegmentModel): readonly Uint8Array[] {
    return this.#context.read(segmentSpans(segment));
  }

  fileOf({ msn }: SegmentModel): string {
    return `${this.#track.id}/${msn}.${MEDIA_EXTENSIONS[this.#track.type]}`;
  }

  archived(segment: SegmentModel, path: string): void {
    // The model forgets them with the update.
    const spans = storedSpans(segment);
    this.#context.emit({ type: 'archive', trackId: this.#track.id, msn: segment.msn, path });
    this.#context.release(spans);
  }

  retire(): string | null {
    const gone = this.#track.retired;
    this.#context.emit({ type: 'retire', trackId: this.#track.id });
    if (gone !== null) this.#context.release(storedSpans(gone));
    return gone?.path ?? null;
  }

  clear(): string[] {
    const all = this.#all();
    this.#track.segments.length = 0;
    this.#track.retired = null;
    this.#context.release(all.flatMap(storedSpans));
    return all.flatMap(({ path }) => path ?? []);
  }

  flush(): void {
    this.#context.flush();
  }

  #all(): SegmentModel[] {
    const { retired, segments } = this.#track;
    return retired === null ? segments.slice() : [retired, ...segments];
  }
}
