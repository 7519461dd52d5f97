/** Lines about what is refused again and again: whoever is refused must not write the log. */
import type { Logger } from './logger.ts';

const PERIOD_MS = 60_000;

interface Kind {
  /** Refused since the last line. */
  count: number;
  fields: object;
  readonly timer: NodeJS.Timeout;
}

/**
 * Writes a line about the first refusal of a kind at once, and from then on one a minute, with how many there were, as long as there are any.
 * The kinds are the sentences, which are ours, so there are few.
 */
export class RefusalLog {
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #kinds = new Map<string, Kind>();

  constructor(logger: Pick<Logger, 'warn'>) {
    this.#logger = logger;
  }

  /** Somebody was refused. `fields` are those of the line that tells of it: the last ones before it count. */
  note(sentence: string, fields: object = {}): void {
    const kind = this.#kinds.get(sentence);
    if (kind !== undefined) {
      kind.count += 1;
      kind.fields = fields;
      return;
    }
    this.#logger.warn({ ...fields, count: 1 }, sentence);
    // It must not keep a server alive that stops.
    const timer = setInterval(() => this.#tell(sentence), PERIOD_MS).unref();
    this.#kinds.set(sentence, { count: 0, fields, timer });
  }

  /** Tells what has not been told. Idempotent. */
  close(): void {
    for (const [sentence, { count, fields, timer }] of this.#kinds) {
      clearInterval(timer);
      if (count > 0) this.#logger.warn({ ...fields, count }, sentence);
    }
    this.#kinds.clear();
  }

  #tell(sentence: string): void {
    const kind = this.#kinds.get(sentence);
    if (kind === undefined) return;
    if (kind.count === 0) {
      clearInterval(kind.timer);
      this.#kinds.delete(sentence);
      return;
    }
    this.#logger.warn({ ...kind.fields, count: kind.count }, sentence);
    kind.count = 0;
  }
}
