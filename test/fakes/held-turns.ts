/** Turns in which newcomers enter only when the test lets them. */
import type { Newcomer, Turns } from '../../src/util/newcomer-turns.ts';

export class HeldTurns implements Turns {
  /** All newcomers, in order. */
  readonly waiting: Newcomer[] = [];
  /** Number of newcomers that gave up their turn. */
  left = 0;

  take(newcomer: Newcomer): void {
    this.waiting.push(newcomer);
  }

  leave(newcomer: Newcomer): void {
    if (this.waiting.includes(newcomer)) this.left += 1;
  }
}
