/** The position of a schedule at a moment: every moment belongs to one slot. Times are sums of lengths from the beginning of the program on. */
import { isLive, type Program, type ScheduleItem, UNLIMITED } from './schedule-definition.ts';

/** A span of time and the item to play in it. */
export interface Slot {
  /** Null: before the first program. */
  program: Program | null;
  /** Null: nothing is scheduled. */
  readonly item: ScheduleItem | null;
  /** Place of the item in its program; -1: no item. */
  readonly index: number;
  /** Wall clock, ms: the item begins then, or has begun then. */
  readonly startsAt: number;
  /** Length of the played media, ms: Infinity if only the program ends it, null if unknown. The player of the slot fills it in. */
  length: number | null;
}

/** Lengths of items. */
export interface ScheduleTimelineOptions {
  /** The length of the file of an item, ms, from its very beginning on; null if unknown. `grained`. */
  readonly lengthOf: (item: ScheduleItem) => number | null;
  /**
   * Whether an unplayable item gives way to the next one. When a position in a running program is looked up, such an item takes no time.
   */
  readonly skips: (item: ScheduleItem) => boolean;
}

const GRAINS_PER_MS = 1024;
/** Minimum length of a played file, ms, however little remains after `start`. */
const MIN_REST_MS = 10;

/** A length that adds up to moments without rounding, for longer than a lifetime. */
export function grained(milliseconds: number): number {
  return Math.round(milliseconds * GRAINS_PER_MS) / GRAINS_PER_MS;
}

/** Whether `moment` has come. A moment is never set more than `most` ms ahead, so a larger distance means that the clock was set back. */
export function isDue(moment: number, now: number, most: number): boolean {
  return moment <= now || (Number.isFinite(moment) && moment - now > most);
}

/** The slots of some programs, which are in the order of their beginnings. */
export class ScheduleTimeline {
  readonly programs: readonly Program[];
  readonly #options: ScheduleTimelineOptions;

  constructor(programs: readonly Program[], options: ScheduleTimelineOptions) {
    this.programs = programs;
    this.#options = options;
  }

  /** The program of a moment. */
  programAt(now: number): Program | null {
    return this.programs.findLast(({ startsAt }) => startsAt <= now) ?? null;
  }

  /** The program behind another one, or the first. */
  programAfter(program: Program | null): Program | null {
    return this.programs[program === null ? 0 : this.programs.indexOf(program) + 1] ?? null;
  }

  /** The slot of a moment, searched from the beginning of its program. */
  at(now: number): Slot {
    const program = this.programAt(now);
    if (program === null) return gap(null, Number.NEGATIVE_INFINITY);
    const lengths = program.items.map((item) => this.#takes(item));
    const total = lengths.reduce((sum, length) => sum + length, 0);
    const elapsed = now - program.startsAt;
    const again = program.repeat && total > 0 && Number.isFinite(total);
    let startsAt = program.startsAt + (again ? Math.floor(elapsed / total) * total : 0);
    for (const [index, length] of lengths.entries()) {
      if (now < startsAt + length) return this.slot(program, index, startsAt);
      startsAt += length;
    }
    // If nothing was playable, the player finds out whether that still holds.
    return total === 0 && program.items.length > 0 ? this.slot(program, 0, now) : gap(program, startsAt);
  }

  /** The slot behind another one, which ends at `from`. */
  after({ program, index }: Slot, from: number): Slot {
    const next = this.programAfter(program);
    if (next !== null && from >= next.startsAt) return this.slot(next, 0, next.startsAt);
    if (program === null || index < 0) return gap(program, from);
    return this.slot(program, program.repeat ? (index + 1) % program.items.length : index + 1, from);
  }

  /** A slot with an item of a program, or without one where the program has no such item. */
  slot(program: Program, index: number, startsAt: number): Slot {
    const item = program.items[index];
    return item === undefined ? gap(program, startsAt) : { program, item, index, startsAt, length: this.lengthOf(item) };
  }

  /** When a slot ends, as far as known: at the latest with its program. */
  endOf({ program, startsAt, length }: Slot): number {
    const end = this.programAfter(program)?.startsAt ?? Number.POSITIVE_INFINITY;
    return length === null || length === Number.POSITIVE_INFINITY ? end : Math.min(startsAt + length, end);
  }

  /** Time that an item is on air, ms: Infinity without an end of its own, null if unknown. */
  lengthOf(item: ScheduleItem): number | null {
    const scheduled = item.duration === UNLIMITED ? Number.POSITIVE_INFINITY : item.duration;
    if (isLive(item)) return scheduled;
    const length = this.#options.lengthOf(item);
    // An item that begins after the end of its file cannot be played.
    const rest = length === null || length <= item.start ? null : Math.max(MIN_REST_MS, length - item.start);
    if (rest === null) return item.duration === UNLIMITED ? null : scheduled;
    return Math.min(scheduled, rest);
  }

  /** The time of an item for finding the position in a running program. */
  #takes(item: ScheduleItem): number {
    const { lengthOf, skips } = this.#options;
    if (!isLive(item) && lengthOf(item) === null && skips(item)) return 0;
    return this.lengthOf(item) ?? Number.POSITIVE_INFINITY;
  }
}

/** A span of time without an item. */
function gap(program: Program | null, startsAt: number): Slot {
  return { program, item: null, index: -1, startsAt, length: Number.POSITIVE_INFINITY };
}

/** Whether two programs play the same at the same times. */
export function samePlay(a: Program, b: Program): boolean {
  return a.startsAt === b.startsAt && a.repeat === b.repeat && sameItems(a.items, b.items);
}

/** Whether two lists of items are the same. */
export function sameItems(a: readonly ScheduleItem[], b: readonly ScheduleItem[]): boolean {
  return a.length === b.length && a.every((item, index) => sameItem(item, b[index]) && item.fallbackOnErr === b[index]?.fallbackOnErr);
}

/** Whether two slots play the same item for the same program, at times at most `apart` ms apart. */
export function isSameSlot(a: Slot, b: Slot, apart: number): boolean {
  return a.program?.startsAt === b.program?.startsAt && sameItem(a.item, b.item) && Math.abs(a.startsAt - b.startsAt) <= apart;
}

function sameItem(a: ScheduleItem | null, b: ScheduleItem | null | undefined): boolean {
  return a?.url === b?.url && a?.start === b?.start && a?.duration === b?.duration;
}
