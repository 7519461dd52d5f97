import type { Program, ScheduleItem } from './schedule-definition.ts';
import { isDue, ScheduleTimeline, type ScheduleTimelineOptions, type Slot } from './schedule-timeline.ts';

const RETRY_MS = 1000;

/** The fallback program of a channel: which of its items comes next, and since when none of them can be played. */
export class FallbackProgram {
  /** The program of all fallback items; null where the channel has none. */
  readonly program: Program | null;
  readonly #timeline: ScheduleTimeline;
  #index = 0;
  /** Consecutive unplayable items. */
  #failures = 0;
  /** Not to be tried earlier. */
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(items: readonly ScheduleItem[], options: ScheduleTimelineOptions) {
    this.program = items.length === 0 ? null : { name: 'fallback', scheduled: '', startsAt: 0, repeat: true, items };
    this.#timeline = new ScheduleTimeline(this.program === null ? [] : [this.program], options);
  }

  get exists(): boolean {
    return this.program !== null;
  }

  get items(): readonly ScheduleItem[] {
    return this.program?.items ?? [];
  }

  /** None of its items was playable, and the first failed again: a single failure may be a busy machine. */
  get fails(): boolean {
    return this.#failures > this.items.length;
  }

  /** Whether it is worth a try. */
  isDue(now: number): boolean {
    return this.program !== null && isDue(this.#notBefore, now, RETRY_MS);
  }

  /** The next item, from `at` on; null if there is none. */
  slot(at: number): Slot | null {
    const { program } = this;
    return program === null ? null : this.#timeline.slot(program, this.#index % program.items.length, at);
  }

  /** When one of its slots ends, as far as known. */
  endOf(slot: Slot): number {
    return this.#timeline.endOf(slot);
  }

  /** Something else is on air: it begins with its first item again. */
  rewind(): void {
    this.#index = 0;
  }

  /** A slot of it is on air. */
  went({ index }: Slot): void {
    this.#failures = 0;
    this.#index = index + 1;
  }

  /** A slot of it cannot be played. */
  failed({ index }: Slot, now: number): void {
    this.#index = index + 1;
    this.#failures += 1;
    if (this.#failures >= this.items.length) this.#notBefore = now + RETRY_MS;
  }
}
