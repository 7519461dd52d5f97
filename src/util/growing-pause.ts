/** Pauses between attempts that fail. */

/** The share of a pause that is left to chance. */
const JITTER = 0.2;

/** `firstMs` doubled `doublings` times, at most `maxMs`. */
export function growingPause(doublings: number, firstMs: number, maxMs: number): number {
  return Math.min(maxMs, firstMs * 2 ** doublings);
}

/** As `growingPause`, up to a fifth shorter, because those that lost one server together must not return together. `random` is 0 to 1. */
export function scatteredPause(doublings: number, firstMs: number, maxMs: number, random: number): number {
  return growingPause(doublings, firstMs, maxMs) * (1 - JITTER + JITTER * random);
}
