/** Which segments of a variant can be played: in memory for a while, then in files as long as DVR reaches. */
import type { Span } from '../../../../delivery/outlet/messages.ts';
import type { DvrArchive } from '../../dvr/ts/dvr-archive.ts';
import type { HlsSegment, HlsUpdate } from '../../wire/ts/updates.ts';

/** Rewinding beyond memory. */
export interface DvrWindow {
  readonly archive: DvrArchive;
  /** Seconds of media that stay playable. */
  readonly maxDuration: number;
}

/** What a window needs of its stream. */
export interface WindowContext {
  read(spans: readonly Span[]): readonly Uint8Array[];
  release(spans: readonly Span[]): void;
  /** The stream holds too much memory, and a window of these spans at least its part of it: it keeps its newest segment. */
  asksBack(spans: () => readonly Span[]): boolean;
  update(update: HlsUpdate): void;
}

type Kept = { -readonly [Key in keyof HlsSegment]: HlsSegment[Key] };

/** One for each variant. The archive of the DVR belongs to the stream, which closes it. */
export class SegmentWindow {
  readonly #variant: string;
  readonly #memoryCount: number;
  readonly #dvr: DvrWindow | null;
  readonly #context: WindowContext;
  readonly #segments: Kept[] = [];
  readonly #writing = new Set<Kept>();
  #shortened = 0;

  /** `memoryCount`: segments that stay in memory. */
  constructor(options: {
    readonly variant: string;
    readonly memoryCount: number;
    readonly dvr: DvrWindow | null;
    readonly context: WindowContext;
  }) {
    this.#variant = options.variant;
    this.#memoryCount = options.memoryCount;
    this.#dvr = options.dvr;
    this.#context = options.context;
  }

  /** Segments that left memory sooner than their number said, because of their bytes. */
  get shortened(): number {
    return this.#shortened;
  }

  add(segment: HlsSegment): void {
    this.#segments.push({ ...segment });
    const surplus = this.#surplus();
    if (this.#dvr === null) this.#drop(surplus.length);
    this.#context.update(this.#segmentUpdate(segment));
    if (this.#dvr === null) return;
    for (const old of surplus) if (!this.#writing.has(old)) this.#archive(old, this.#dvr);
    this.#trim(this.#dvr);
  }

  /** What has to leave memory: segments beyond the count and, where they are so large, beyond the memory of the stream. */
  #surplus(): Kept[] {
    const inMemory = this.#segments.filter(({ path }) => path === null);
    let gone = Math.max(0, inMemory.length - this.#memoryCount);
    const crowds = (): boolean => this.#context.asksBack(() => inMemory.flatMap(({ spans }) => spans));
    if (gone < inMemory.length - 1 && crowds()) {
      this.#shortened += inMemory.length - 1 - gone;
      gone = inMemory.length - 1;
    }
    return inMemory.slice(0, gone);
  }

  /** Lets go of everything: the variant is gone. */
  clear(): void {
    this.#drop(this.#segments.length);
  }

  /** What a thread that starts late must know. */
  snapshot(): HlsUpdate[] {
    return this.#segments.map((segment) => this.#segmentUpdate({ ...segment }));
  }

  #segmentUpdate(segment: HlsSegment): HlsUpdate {
    return { type: 'segment', variant: this.#variant, segment, firstNumber: this.#segments[0]?.number ?? segment.number };
  }

  #archive(segment: Kept, { archive }: DvrWindow): void {
    this.#writing.add(segment);
    const { number, spans } = segment;
    const read = (): readonly Uint8Array[] => (this.#segments.includes(segment) ? this.#context.read(spans) : []);
    archive.write(`${this.#variant}/${number}.ts`, read, (path) => {
      this.#writing.delete(segment);
      if (!this.#segments.includes(segment)) {
        if (path !== null) archive.remove(path);
      } else if (path === null) {
        // Playlists cannot have holes: what lies before goes too.
        this.#drop(this.#segments.indexOf(segment) + 1);
        this.#retired();
      } else {
        segment.path = path;
        this.#context.update({ type: 'archive', variant: this.#variant, number, path });
        this.#context.release(spans);
      }
    });
  }

  #trim({ maxDuration }: DvrWindow): void {
    let total = this.#segments.reduce((sum, { duration }) => sum + duration, 0);
    let count = 0;
    for (const { duration, path } of this.#segments) {
      if (total <= maxDuration || path === null) break;
      total -= duration;
      count += 1;
    }
    if (count === 0) return;
    this.#drop(count);
    this.#retired();
  }

  #retired(): void {
    const firstNumber = this.#segments[0]?.number ?? Number.MAX_SAFE_INTEGER;
    this.#context.update({ type: 'retire', variant: this.#variant, firstNumber });
  }

  #drop(count: number): void {
    for (const { path, spans } of this.#segments.splice(0, count)) {
      if (path === null) this.#context.release(spans);
      else this.#dvr?.archive.remove(path);
    }
  }
}
