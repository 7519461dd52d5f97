import type { Clock } from './clock.ts';
import { LineBudget } from './line-budget.ts';
import type { Logger, LogLines } from './logger.ts';

/** Limit of lines of a kind per minute. */
export const MAX_LINES_PER_MINUTE = 100;

/** The budget shared by the `limited` loggers of a server; suppressed lines are counted in `lines`. The caller closes it. */
export function limitedLines(clock: Clock, lines: LogLines): LineBudget {
  const tell = (kind: string, count: number): void =>
    lines.warn({ lines: count }, `${count} more lines '${kind}' within a minute were left out`);
  return new LineBudget({ clock, linesPerMinute: MAX_LINES_PER_MINUTE, tell });
}

/**
 * Writes to the logger that `open` returns, which is called for the first line: most children in a flood never write a line.
 * Lines of `limited` are written within the budget.
 */
export class BudgetedLogger implements Logger {
  readonly #open: () => LogLines;
  readonly #budget: LineBudget;
  /** The subject of the lines. */
  readonly #peer: unknown;
  #opened: LogLines | null = null;
  #limited: Logger | null = null;

  constructor(open: () => LogLines, budget: LineBudget, peer?: unknown) {
    this.#open = open;
    this.#budget = budget;
    this.#peer = peer;
  }

  debug(fields: object, message: string): void {
    this.#lines.debug(fields, message);
  }

  info(fields: object, message: string): void {
    this.#lines.info(fields, message);
  }

  warn(fields: object, message: string): void {
    this.#lines.warn(fields, message);
  }

  error(fields: object, message: string): void {
    this.#lines.error(fields, message);
  }

  child(fields: object): Logger {
    return new BudgetedLogger(() => this.#lines.child(fields), this.#budget, peerOf(fields, this.#peer));
  }

  get limited(): Logger {
    this.#limited ??= new LimitedLogger(this, this.#budget, this.#peer);
    return this.#limited;
  }

  get #lines(): LogLines {
    this.#opened ??= this.#open();
    return this.#opened;
  }
}

/** `debug` lines are for a deliberate investigation, and are not limited. */
class LimitedLogger implements Logger {
  readonly #logger: Logger;
  readonly #budget: LineBudget;
  readonly #peer: unknown;

  constructor(logger: Logger, budget: LineBudget, peer: unknown) {
    this.#logger = logger;
    this.#budget = budget;
    this.#peer = peer;
  }

  debug(fields: object, message: string): void {
    this.#logger.debug(fields, message);
  }

  info(fields: object, message: string): void {
    if (this.#mayWrite(fields, message)) this.#logger.info(fields, message);
  }

  warn(fields: object, message: string): void {
    if (this.#mayWrite(fields, message)) this.#logger.warn(fields, message);
  }

  error(fields: object, message: string): void {
    if (this.#mayWrite(fields, message)) this.#logger.error(fields, message);
  }

  child(fields: object): Logger {
    return new LimitedLogger(this.#logger.child(fields), this.#budget, peerOf(fields, this.#peer));
  }

  get limited(): Logger {
    return this;
  }

  #mayWrite(fields: object, message: string): boolean {
    return this.#budget.take(kindOf(fields, message), fields, peerOf(fields, this.#peer));
  }
}

function peerOf(fields: object, otherwise: unknown): unknown {
  return 'peer' in fields ? fields.peer : otherwise;
}

/**
 * The kind of a message: the text before the first colon, digit or quotation mark, or after a leading name. Lines with a reason code have
 * one kind for each code, so that one reason does not hide another.
 */
export function kindOf(fields: object, message: string): string {
  const [words = ''] = message.replace(LEADING_NAME, '').split(VARIABLE, 1);
  const kind = words.trim();
  return 'code' in fields && typeof fields.code === 'string' ? `${kind} (${fields.code})` : kind;
}

const LEADING_NAME = /^'[^']*'/;
const VARIABLE = /[:'"\d]/;
