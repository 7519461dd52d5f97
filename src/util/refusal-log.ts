/** Lines about what is refused again and again: whoever is refused must not write the log. */
import { type Clock, systemClock } from './clock.ts';
import { LineBudget } from './line-budget.ts';
import type { Logger } from './logger.ts';

/**
 * Writes a line about the first refusal of a kind at once, and from then on one a minute, with how many there were, as long as there are any.
 * Some who are refused meanwhile have a line of their own, one for each address (`MAX_LATE_LINES`): a flood must not hide who is honest.
 * The kinds are the sentences, which are ours, so there are few.
 */
export class RefusalLog {
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #budget: LineBudget;

  constructor(logger: Pick<Logger, 'warn'>, clock: Clock = systemClock) {
    this.#logger = logger;
    const tell = (sentence: string, count: number, fields: object): void => logger.warn({ ...fields, count }, sentence);
    this.#budget = new LineBudget({ clock, linesPerMinute: 1, tell });
  }

  /** Somebody was refused. `fields` are those of the line that tells of it: the last ones before it count. */
  note(sentence: string, fields: object = {}): void {
    if (this.#budget.take(sentence, fields, 'peer' in fields ? fields.peer : undefined))
      this.#logger.warn({ ...fields, count: 1 }, sentence);
  }

  /** Tells what has not been told. Idempotent. */
  close(): void {
    this.#budget.close();
  }
}
