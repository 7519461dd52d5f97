/** Faults that may come again every second: told when they are new, and then once a minute. */
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';

const TELL_EVERY_MS = 60_000;
const MAX_TOLD = 1000;

/** Lines about troubled objects, each by its name, until the trouble is over. */
export class TroubleLog {
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Number of faults, including those that were not logged. */
  count = 0;
  readonly #told = new Map<string, number>();

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** The object of this name has a fault. */
  tell(name: string, message: string): void {
    this.count += 1;
    const now = this.#clock.monotonic();
    const told = this.#told.get(name);
    if (told !== undefined && now - told < TELL_EVERY_MS) return;
    if (this.#told.size >= MAX_TOLD) this.#told.clear();
    this.#told.set(name, now);
    this.#logger.warn({ ...(name !== '' && { url: name }) }, message);
  }

  /** The fault of this name is over; logged if the fault was. */
  over(name: string, message: string): void {
    if (this.#told.delete(name)) this.#logger.info({ ...(name !== '' && { url: name }) }, message);
  }
}
