/** When something that the disk refused is tried again: after a while, and once there is room. */
import type { Clock } from '../../util/clock.ts';

/** First pause, ms; it doubles whenever the next attempt fails soon. */
export const FIRST_PAUSE_MS = 2000;
/** The pause doubles up to this, ms. */
export const MAX_PAUSE_MS = 60_000;
/** After this much success, pauses start again with the first, ms. */
const RECOVERY_MS = 60_000;

/**
 * Decides when a task stopped by a full disk may try again: after a pause, or earlier when the disk has room. One for each task; needs no
 * closing.
 */
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
    this.#pauseMs = now - this.#triedAt > RECOVERY_MS ? FIRST_PAUSE_MS : Math.min(2 * this.#pauseMs, MAX_PAUSE_MS);
    this.#notBefore = now + this.#pauseMs;
    this.#hasRoom = false;
  }

  /**
   * True when an attempt is worthwhile; the attempt then counts as made. `look`, which must not reject, checks the disk in the background,
   * so the result belongs to a later call: call this repeatedly.
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
