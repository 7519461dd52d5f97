/** The segments of one variant that can be played. */
import { segmentExtension } from '../../wire/ts/multivariant-text.ts';
import type { HlsSegment, HlsUpdate } from '../../wire/ts/update.ts';
import { type Rewinding, type SegmentList, type SegmentMemory, SegmentWindow } from '../segment-window.ts';

/** A stream as the segments of a variant see it. */
export interface VariantSegmentsContext extends SegmentMemory {
  update(update: HlsUpdate): void;
}

/** Number of segments that stay. */
export interface VariantWindowOptions {
  /** In memory. */
  readonly memoryCount: number;
  /** Beyond that; null: not at all. */
  readonly rewinding: Rewinding | null;
}

type Kept = { -readonly [Key in keyof HlsSegment]: HlsSegment[Key] };

/** One for each variant, with its window. */
export class VariantSegments implements SegmentList<Kept> {
  readonly segments: Kept[] = [];
  readonly window: SegmentWindow<Kept>;
  readonly #variant: string;
  readonly #context: VariantSegmentsContext;

  constructor(variant: string, { memoryCount, rewinding }: VariantWindowOptions, context: VariantSegmentsContext) {
    this.#variant = variant;
    this.#context = context;
    this.window = new SegmentWindow(this, memoryCount, rewinding);
  }

  /** The newest segment is complete. */
  add(segment: HlsSegment): void {
    this.segments.push({ ...segment });
    this.#context.update({ type: 'segment', variant: this.#variant, segment });
    this.window.segmentClosed();
  }

  /** State for a thread that starts late. */
  snapshot(): HlsUpdate[] {
    return this.segments.map((segment) => ({ type: 'segment', variant: this.#variant, segment: { ...segment } }));
  }

  asksBack(): boolean {
    return this.#context.asksBack(() => this.segments.flatMap(({ path, spans }) => (path === null ? spans : [])));
  }

  read({ spans }: Kept): readonly Uint8Array[] {
    return this.#context.read(spans);
  }

  fileOf({ number }: Kept): string {
    return `${this.#variant}/${number}.${segmentExtension(this.#variant)}`;
  }

  archived(segment: Kept, path: string): void {
    segment.path = path;
    this.#context.update({ type: 'archive', variant: this.#variant, number: segment.number, path });
    this.#context.release(segment.spans);
  }

  retire(): string | null {
    const gone = this.segments.shift();
    const firstNumber = this.segments[0]?.number ?? Number.MAX_SAFE_INTEGER;
    this.#context.update({ type: 'retire', variant: this.#variant, firstNumber });
    return gone === undefined ? null : this.#letGo(gone);
  }

  clear(): string[] {
    return this.segments.splice(0).flatMap((segment) => this.#letGo(segment) ?? []);
  }

  /** Updates go at once. */
  flush(): void {}

  /** Path of the file to remove, if any. */
  #letGo({ path, spans }: Kept): string | null {
    if (path === null) this.#context.release(spans);
    return path;
  }
}
