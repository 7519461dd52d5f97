import type { Clock } from '../../src/util/clock.ts';

/** A clock that the test advances. */
export class ManualClock implements Clock {
  #wall: number;
  #monotonic = 1000;

  constructor(wall = Date.UTC(2026, 0, 1)) {
    this.#wall = wall;
  }

  now(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  /** Sets the wall clock forward or back by `ms`. */
  setOn(ms: number): void {
    this.#wall += ms;
  }

  advance(ms: number): void {
    this.#wall += ms;
    this.#monotonic += ms;
  }
}
