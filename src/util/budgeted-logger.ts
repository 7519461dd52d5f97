import { kindOf, type LineBudget } from './line-budget.ts';
import type { Logger, LogLines } from './logger.ts';

/** Writes to `lines`; those of `limited` as far as the budget goes. */
export class BudgetedLogger implements Logger {
  readonly #lines: LogLines;
  readonly #budget: LineBudget;
  #limited: Logger | null = null;

  constructor(lines: LogLines, budget: LineBudget) {
    this.#lines = lines;
    this.#budget = budget;
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
    return new BudgetedLogger(new ChildLines(this.#lines, fields), this.#budget);
  }

  get limited(): Logger {
    this.#limited ??= new LimitedLogger(this, this.#budget);
    return this.#limited;
  }
}

/** A child that is made with its first line: of what comes and goes in a flood most never write one. */
class ChildLines implements LogLines {
  readonly #parent: LogLines;
  readonly #fields: object;
  #own: LogLines | null = null;

  constructor(parent: LogLines, fields: object) {
    this.#parent = parent;
    this.#fields = fields;
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

  child(fields: object): LogLines {
    return this.#lines.child(fields);
  }

  get #lines(): LogLines {
    this.#own ??= this.#parent.child(this.#fields);
    return this.#own;
  }
}

/** Lines of `debug` are for whoever looks at one thing, and are not limited. */
class LimitedLogger implements Logger {
  readonly #logger: Logger;
  readonly #budget: LineBudget;

  constructor(logger: Logger, budget: LineBudget) {
    this.#logger = logger;
    this.#budget = budget;
  }

  debug(fields: object, message: string): void {
    this.#logger.debug(fields, message);
  }

  info(fields: object, message: string): void {
    if (this.#budget.take(kindOf(message))) this.#logger.info(fields, message);
  }

  warn(fields: object, message: string): void {
    if (this.#budget.take(kindOf(message))) this.#logger.warn(fields, message);
  }

  error(fields: object, message: string): void {
    if (this.#budget.take(kindOf(message))) this.#logger.error(fields, message);
  }

  child(fields: object): Logger {
    return new LimitedLogger(this.#logger.child(fields), this.#budget);
  }

  get limited(): Logger {
    return this;
  }
}
