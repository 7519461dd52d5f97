/** Turns in which newcomers enter only when the test says so. */
import type { Newcomer, Turns } from '../../src/util/newcomer-turns.ts';

export class HeldTurns implements Turns {
  /** All that came, in order. */
  readonly waiting: Newcomer[] = [];
  /** How many gave their turn up. */
  left = 0;

  take(newcomer: Newcomer): void {
    this.waiting.push(newcomer);
  }

  leave(newcomer: Newcomer): void {
    if (this.waiting.includes(newcomer)) this.left += 1;
  }
}
