/** Cookies that prove a caller's address before anything is kept about it, draft-sharabayko-srt-01 §4.3.1.1. */
import { randomBytes } from 'node:crypto';
import { KeyedHash } from '../../util/keyed-hash.ts';

const PERIOD_MS = 60_000;

/** One for each port. It stores only a secret, so callers cannot fill memory. */
export class SynCookies {
  readonly #hash = new KeyedHash('sha256', randomBytes(32));

  /** For the caller at `peer` (address and port); `nowMs` is a monotonic time in ms. */
  issue(peer: string, nowMs: number): number {
    return this.#compute(peer, Math.floor(nowMs / PERIOD_MS));
  }

  /** True for cookies of the current and of the previous minute. */
  isValid(peer: string, cookie: number, nowMs: number): boolean {
    const period = Math.floor(nowMs / PERIOD_MS);
    return cookie === this.#compute(peer, period) || cookie === this.#compute(peer, period - 1);
  }

  #compute(peer: string, period: number): number {
    return this.#hash.number(`${peer} ${period}`);
  }
}
