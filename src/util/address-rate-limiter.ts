/** A budget for each client address. */
import { addressOwner } from './client-address.ts';
import { TokenBucket } from './token-bucket.ts';

/** Maximum of remembered addresses; the least recently used one is forgotten first, and starts with a full budget again. */
const MAX_ADDRESSES = 4096;

/** Limits actions per second for each address; an IPv6 /64 counts as one address. */
export class AddressRateLimiter {
  readonly #perSecond: number;
  /** Least recently used first. */
  readonly #limiter = new Map<string, TokenBucket>();

  /** `perSecond` 0: no limit. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Addresses remembered. */
  get size(): number {
    return this.#limiter.size;
  }

  /** True when `address` may act once more at `now` (monotonic, ms); the action is then counted. */
  take(address: string, now: number): boolean {
    if (this.#perSecond === 0) return true;
    const owner = addressOwner(address);
    const budget = this.#limiter.get(owner) ?? new TokenBucket({ burst: this.#perSecond, perSecond: this.#perSecond });
    this.#limiter.delete(owner);
    this.#limiter.set(owner, budget);
    if (this.#limiter.size > MAX_ADDRESSES) {
      const [oldest = ''] = this.#limiter.keys();
      this.#limiter.delete(oldest);
    }
    return budget.take(now);
  }

  /** Takes back the last use of `address`. */
  giveBack(address: string): void {
    this.#limiter.get(addressOwner(address))?.giveBack();
  }
}
