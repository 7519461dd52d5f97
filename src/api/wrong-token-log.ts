/** Log lines about wrong access tokens: they name the client, which cannot flood the log. */
import { type Clock, systemClock } from '../util/clock.ts';
import { LineBudget } from '../util/line-budget.ts';
import type { Logger } from '../util/logger.ts';

const SENTENCE = 'API request with a wrong access token';

/**
 * Logs a line at once for each address, and then one per minute with the number of attempts. Addresses beyond some hundreds share one line.
 */
export class WrongTokenLog {
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #budget: LineBudget;

  constructor(logger: Logger, clock: Clock = systemClock) {
    // Many addresses that guess tokens are limited like one kind of line.
    this.#logger = logger.limited;
    const tell = (_address: string, count: number, fields: object): void => this.#logger.warn({ ...fields, count }, SENTENCE);
    this.#budget = new LineBudget({ clock, linesPerMinute: 1, tell });
  }

  /** `fields` are those of the line; the last ones before it is written are used. */
  note(address: string, fields: object): void {
    if (this.#budget.take(address, fields)) this.#logger.warn({ ...fields, count: 1 }, SENTENCE);
  }

  /** Logs the attempts not reported yet. Idempotent. */
  close(): void {
    this.#budget.close();
  }
}
