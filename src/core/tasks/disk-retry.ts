/** When something that the disk refused is tried again: after a while, and once there is room. */
import type { Clock } from '../../util/clock.ts';

/** First pause, ms; it doubles whenever the next attempt fails soon. */
export const FIRST_PAUSE_MS = 2000;
/** The pause doubles up to this, ms. */
export const MAX_PAUSE_MS = 60_000;
/** After this much success, pauses start again with the first, ms. */
const CALM_MS = 60_000;

/** When a task that a full disk stopped may try again: earlier than its pause when the disk has room. One for each task; nothing to close. */
export class DiskRetry {
  readonly #clock: Clock;
  #pauseMs = FIRST_PAUSE_MS;
  /** Monotonic, ms: not before then. */
  #notBefore = 0;
  /** Monotonic, ms: the last attempt. */
  #triedAt = Number.NEGATIVE_INFINITY;
  #looking = false;
  #hasRoom = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The disk has refused. */
  failed(): void {
    const now = this.#clock.monotonic();
    this.#pauseMs = now - this.#triedAt > CALM_MS ? FIRST_PAUSE_MS : Math.min(2 * this.#pauseMs, MAX_PAUSE_MS);
    this.#notBefore = now + this.#pauseMs;
    this.#hasRoom = false;
  }

  /**
   * True when it is worth an attempt, which counts as made. Looks behind the scenes, by `look`, which never rejects: so ask again and
   * again.
   */
  isDue(look: () => Promise<boolean>): boolean {
    const now = this.#clock.monotonic();
    if (this.#looking || now < this.#notBefore) return false;
    if (this.#hasRoom) {
      this.#hasRoom = false;
      this.#triedAt = now;
      return true;
    }
    this.#looking = true;
    void look().then((hasRoom) => {
      this.#looking = false;
      this.#hasRoom = hasRoom;
      if (!hasRoom) this.#notBefore = this.#clock.monotonic() + this.#pauseMs;
    });
    return false;
  }
}
