/** Finds the server that takes over a stream of a lost server, in the origin map. */
import type { Clock } from '../util/clock.ts';
import { schemeOf } from './pull.ts';

/**
 * Longest wait for a successor, ms: an entry of the map outlives its server by 10 s, and servers that wait for the name check every 2.5 s.
 */
const MAX_MS = 15_000;
/** Time without an entry in the map after which no server will take over, ms: a server that waited for the name would have taken it. */
const UNKNOWN_MS = 4000;

/** Finds successors of one pulled stream. Needs no closing. */
export class SuccessorLookup {
  readonly #ask: () => Promise<string | null>;
  readonly #clock: Clock;
  /** Since when the map has no entry, monotonic ms; null: it has one. */
  #unknownSince: number | null = null;

  /** `ask` never rejects. */
  constructor(ask: () => Promise<string | null>, clock: Clock) {
    this.#ask = ask;
    this.#clock = clock;
  }

  /** Resolves with the URL of the stream's present server, if it has one of `schemes`; null if none is known. */
  async find(schemes: readonly string[]): Promise<string | null> {
    const url = await this.#ask();
    if (url === null) this.#unknownSince ??= this.#clock.monotonic();
    else this.#unknownSince = null;
    return url !== null && schemes.includes(schemeOf(url)) ? url : null;
  }

  /** No successor is to be expected for a stream whose last media came at `inputAt`, monotonic ms. */
  isOver(inputAt: number): boolean {
    const now = this.#clock.monotonic();
    if (now - inputAt > MAX_MS) return true;
    return this.#unknownSince !== null && now - this.#unknownSince > UNKNOWN_MS;
  }
}
