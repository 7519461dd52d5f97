import type { Clock } from '../../util/clock.ts';
import { guarded } from '../../util/guarded.ts';
import type { Logger } from '../../util/logger.ts';

/** Something to do; `now` is the wall clock, ms. */
export type QueuedWork = (now: number) => void;

/** Runs operations one after the other, even if requested from within another, and a follow-up after each. */
export class WorkInTurn {
  /** Runs a task like `do`, after the awaited one. */
  readonly doAfter: (wait: Promise<unknown>, work: QueuedWork) => void;
  readonly #clock: Clock;
  readonly #follow: QueuedWork;
  readonly #waiting: QueuedWork[] = [];
  #working = false;
  #closed = false;

  constructor({ clock, logger, follow }: { readonly clock: Clock; readonly logger: Logger; readonly follow: QueuedWork }) {
    this.#clock = clock;
    this.#follow = follow;
    this.doAfter = guarded(logger, 'a scheduled channel', async (wait, work) => {
      await wait;
      this.do(work);
    });
  }

  do(work: QueuedWork): void {
    this.#waiting.push(work);
    if (this.#working) return;
    this.#working = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined && !this.#closed; next = this.#waiting.shift()) {
        const now = this.#clock.now();
        next(now);
        this.#follow(now);
      }
    } finally {
      this.#working = false;
    }
  }

  /** Nothing further runs. Idempotent. */
  close(): void {
    this.#closed = true;
  }
}
