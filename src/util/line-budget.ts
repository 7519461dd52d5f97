/** Limits how often a log line that clients can cause is written. */
import { endOwner } from './client-address.ts';
import type { Clock } from './clock.ts';

const MINUTE_MS = 60_000;
/** Limit of kinds with their own count; all further kinds share one. */
const MAX_KINDS = 256;
const OTHERS = 'of other kinds';
/**
 * Extra lines of a kind per minute beyond its budget, for addresses without a line in that minute: a flood from one address must not hide
 * the others.
 */
export const MAX_LATE_LINES = 8;

/** Options of a budget. */
export interface LineBudgetOptions {
  readonly clock: Clock;
  /** Limit of lines of a kind per minute. */
  readonly linesPerMinute: number;
  /** Writes the line about suppressed lines; `fields` are those of the last of them. */
  readonly tell: (kind: string, lines: number, fields: object) => void;
}

interface Kind {
  lines: number;
  fields: object;
  /** Addresses that had a line. */
  readonly owners: Set<string>;
  late: number;
}

/**
 * Counts the lines of each kind per minute, and reports the number of suppressed lines at the end of the minute. The owner calls `close`.
 */
export class LineBudget {
  readonly #options: LineBudgetOptions;
  readonly #kinds = new Map<string, Kind>();
  #endsAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: LineBudgetOptions) {
    this.#options = options;
  }

  /** Whether a line of `kind` may be written now; suppressed lines are counted. `peer`: the client's address, with or without a port. */
  take(kind: string, fields: object, peer?: unknown): boolean {
    const { clock, linesPerMinute } = this.#options;
    const now = clock.monotonic();
    if (now >= this.#endsAt) this.#turn(now);
    const counted = this.#kindOf(kind);
    const isEarly = counted.lines < linesPerMinute;
    if ((isEarly || counted.late < MAX_LATE_LINES) && typeof peer === 'string') {
      const owner = endOwner(peer);
      if (!isEarly && !counted.owners.has(owner)) {
        counted.owners.add(owner);
        counted.late += 1;
        return true;
      }
      counted.owners.add(owner);
    }
    counted.lines += 1;
    if (isEarly) return true;
    counted.fields = fields;
    // The timer must not keep a stopping server alive.
    this.#timer ??= setTimeout(() => this.#turn(clock.monotonic()), this.#endsAt - now).unref();
    return false;
  }

  /** Reports the suppressed lines so far. Idempotent. */
  close(): void {
    this.#tell();
    this.#kinds.clear();
    this.#endsAt = Number.NEGATIVE_INFINITY;
  }

  #kindOf(name: string): Kind {
    const known = this.#kinds.has(name) || this.#kinds.size < MAX_KINDS ? name : OTHERS;
    let kind = this.#kinds.get(known);
    if (kind === undefined) {
      kind = { lines: 0, fields: {}, owners: new Set(), late: 0 };
      this.#kinds.set(known, kind);
    }
    return kind;
  }

  /** Ends the minute and begins another. */
  #turn(now: number): void {
    const loud = this.#tell();
    this.#kinds.clear();
    // The report is already the first line of the new minute.
    for (const [kind, fields] of loud) {
      const owners = 'peer' in fields && typeof fields.peer === 'string' ? [endOwner(fields.peer)] : [];
      this.#kinds.set(kind, { lines: 1, fields: {}, owners: new Set(owners), late: 0 });
    }
    this.#endsAt = now + MINUTE_MS;
  }

  /** Reports suppressed lines. Returns the reported kinds, each with the fields of its last line. */
  #tell(): [kind: string, fields: object][] {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const { linesPerMinute, tell } = this.#options;
    const loud: [kind: string, fields: object][] = [];
    for (const [kind, { lines, fields }] of this.#kinds) {
      if (lines <= linesPerMinute) continue;
      loud.push([kind, fields]);
      tell(kind, lines - linesPerMinute, fields);
    }
    return loud;
  }
}
