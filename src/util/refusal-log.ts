/** Log lines for repeated refusals: refused clients must not fill the log. */
import { type Clock, systemClock } from './clock.ts';
import { LineBudget } from './line-budget.ts';
import type { Logger } from './logger.ts';

/**
 * Logs the first refusal of a kind at once, then one line a minute with the count while refusals continue. Some clients refused meanwhile
 * get a line of their own, one for each address (`MAX_LATE_LINES`), so that a flood does not hide legitimate clients. The kinds are fixed
 * sentences, so there are few.
 */
export class RefusalLog {
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #budget: LineBudget;

  constructor(logger: Pick<Logger, 'warn'>, clock: Clock = systemClock) {
    this.#logger = logger;
    const tell = (sentence: string, count: number, fields: object): void => logger.warn({ ...fields, count }, sentence);
    this.#budget = new LineBudget({ clock, linesPerMinute: 1, tell });
  }

  /** Counts a refusal. The next line has the `fields` of the last refusal before it. */
  note(sentence: string, fields: object = {}): void {
    if (this.#budget.take(sentence, fields, 'peer' in fields ? fields.peer : undefined))
      this.#logger.warn({ ...fields, count: 1 }, sentence);
  }

  /** Logs the refusals not reported yet. Idempotent. */
  close(): void {
    this.#budget.close();
  }
}
