/** Rules by which a recording continues in a new file: after an interval, or at times of the day. */

const FIELDS = [
  { name: 'second', most: 59 },
  { name: 'minute', most: 59 },
  { name: 'hour', most: 23 },
] as const;
/** Steps from one candidate to the next; a whole day needs fewer. */
const MAX_STEPS = 500;
const MS_PER_SECOND = 1000;
const SECONDS_PER_MINUTE = 60;
const MINUTES_PER_HOUR = 60;

/** `<second> <minute> <hour>` in crontab syntax: `*`, `n`, `a-b`, lists of these with commas, each with `/step`. */
export class DailySchedule {
  readonly #seconds: readonly boolean[];
  readonly #minutes: readonly boolean[];
  readonly #hours: readonly boolean[];

  private constructor(fields: readonly (readonly boolean[])[]) {
    [this.#seconds = [], this.#minutes = [], this.#hours = []] = fields;
  }

  /** Null when `text` is no such schedule. */
  static parse(text: string): DailySchedule | null {
    const words = text.trim().split(/\s+/);
    if (words.length !== FIELDS.length) return null;
    const fields: boolean[][] = [];
    for (const [index, { most }] of FIELDS.entries()) {
      const field = parseField(words[index] ?? '', most);
      if (field === null) return null;
      fields.push(field);
    }
    return new DailySchedule(fields);
  }

  /** The first moment after `time` (ms since the epoch) that the schedule names, in the server's local time. */
  nextAfter(time: number): number {
    // Time that goes by: fields set in a `Date` mean the first of two hours of one name, which is over when clocks are set back.
    let at = Math.floor(time / MS_PER_SECOND) * MS_PER_SECOND + MS_PER_SECOND;
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const local = new Date(at);
      const toMinute = SECONDS_PER_MINUTE - local.getSeconds();
      const toHour = (MINUTES_PER_HOUR - 1 - local.getMinutes()) * SECONDS_PER_MINUTE + toMinute;
      if (this.#hours[local.getHours()] !== true) at += toHour * MS_PER_SECOND;
      else if (this.#minutes[local.getMinutes()] !== true) at += toMinute * MS_PER_SECOND;
      else if (this.#seconds[local.getSeconds()] !== true) at += MS_PER_SECOND;
      else return at;
    }
    // An hour that a change of the clocks leaves out comes a day later.
    return Number.POSITIVE_INFINITY;
  }
}

/** The named values from 0 to `most`; null for an invalid text. */
function parseField(text: string, most: number): boolean[] | null {
  const named = new Array<boolean>(most + 1).fill(false);
  for (const part of text.split(',')) {
    const match = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/.exec(part);
    if (match === null) return null;
    const [, first, last, stepText] = match;
    const from = Number(first ?? 0);
    // `5/10` means every tenth from five on, as in crontab.
    const to = last !== undefined ? Number(last) : first !== undefined && stepText === undefined ? from : most;
    const step = Number(stepText ?? 1);
    if (from > most || to > most || from > to || step === 0) return null;
    for (let value = from; value <= to; value += step) named[value] = true;
  }
  return named;
}

/** Decides at which keyframe a file ends. One for each recording. */
export interface SplitRule {
  /** A file has begun: its first frame is shown at `mediaMs`; `wallMs` is the time of day. */
  begin(mediaMs: number, wallMs: number): void;
  /** Whether a keyframe shown at `mediaMs` begins the next file. */
  splitsAt(mediaMs: number, wallMs: number): boolean;
}

/** Files of `intervalMs` each, a little longer until the next keyframe. */
export function everyInterval(intervalMs: number): SplitRule {
  let from = 0;
  return {
    begin: (mediaMs) => {
      from = mediaMs;
    },
    // Timestamps are rounded to their timebase, so a keyframe may seem a little early.
    splitsAt: (mediaMs) => mediaMs - from >= intervalMs - 1,
  };
}

/** Files that end at the first keyframe at or after each moment of `schedule`. */
export function atTimes(schedule: DailySchedule): SplitRule {
  let next = Number.POSITIVE_INFINITY;
  return {
    begin: (_mediaMs, wallMs) => {
      next = schedule.nextAfter(wallMs);
    },
    splitsAt: (_mediaMs, wallMs) => wallMs >= next,
  };
}

/** One file for the whole recording. */
export const NEVER: SplitRule = { begin: () => undefined, splitsAt: () => false };
