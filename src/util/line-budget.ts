/** How often a line may be in the log that somebody outside can cause. */
import type { Clock } from './clock.ts';
import type { LogLines } from './logger.ts';

/** Lines of a kind that go out in a minute. */
export const MAX_LINES_PER_MINUTE = 100;
const MINUTE_MS = 60_000;
/** Kinds that are told apart; all others count as one. */
const MAX_KINDS = 256;
const OTHERS = 'of other kinds';

/** Counts the lines of each kind in a minute, and tells then how many were too many. Whoever made it calls `close`. */
export class LineBudget {
  readonly #clock: Clock;
  readonly #logger: LogLines;
  readonly #lines = new Map<string, number>();
  #endsAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;

  constructor(clock: Clock, logger: LogLines) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Whether a line of `kind` may go out now; one that may not is counted. */
  take(kind: string): boolean {
    const now = this.#clock.monotonic();
    if (now >= this.#endsAt) {
      this.#tell();
      this.#endsAt = now + MINUTE_MS;
    }
    const known = this.#lines.has(kind) || this.#lines.size < MAX_KINDS ? kind : OTHERS;
    const lines = (this.#lines.get(known) ?? 0) + 1;
    this.#lines.set(known, lines);
    if (lines <= MAX_LINES_PER_MINUTE) return true;
    this.#timer ??= setTimeout(() => this.#tell(), this.#endsAt - now).unref();
    return false;
  }

  /** Tells what was left out so far. Idempotent. */
  close(): void {
    this.#tell();
  }

  /** Ends the minute. */
  #tell(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#endsAt = Number.NEGATIVE_INFINITY;
    const counted = [...this.#lines];
    this.#lines.clear();
    for (const [kind, count] of counted) {
      const lines = count - MAX_LINES_PER_MINUTE;
      if (lines > 0) this.#logger.warn({ lines }, `${lines} more lines '${kind}' within a minute were left out`);
    }
  }
}

/**
 * What comes before the first colon, digit or quotation mark of a message, or behind a name it begins with: the words that are the same in
 * all lines of its kind.
 */
export function kindOf(message: string): string {
  const [words = ''] = message.replace(LEADING_NAME, '').split(VARIABLE, 1);
  return words.trim();
}

const LEADING_NAME = /^'[^']*'/;
const VARIABLE = /[:'"\d]/;
