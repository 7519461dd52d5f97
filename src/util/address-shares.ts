/** The share of one client address in a resource that all clients share. */
import { addressOwner } from './client-address.ts';
import { OwnerCounts } from './owner-counts.ts';

/** A place that a client holds. */
export interface Seat {
  /** Gives the place back. Idempotent. */
  leave(): void;
}

/** How many seats there are. */
export interface ShareOptions {
  /** Seats of one address; of IPv6 those of a /64 count together. 0: as many as there are. */
  readonly perAddress: number;
  /** Seats of all; absent: somebody else counts them. An address gets half of them at most, so that nobody alone takes all. */
  readonly total?: number;
}

/**
 * Counts seats by address. Who holds none is not remembered, so it never knows more addresses than there are seats.
 */
export class AddressShares {
  /** Seats that one address may hold; infinite without limit. */
  readonly share: number;
  /** Asked in vain since the start. */
  refused = 0;
  readonly #counts = new OwnerCounts();

  constructor({ perAddress, total = Number.POSITIVE_INFINITY }: ShareOptions) {
    const wanted = perAddress === 0 ? total : Math.min(perAddress, Math.ceil(total / 2));
    this.share = Math.max(1, wanted);
  }

  /** Seats that `address` holds. */
  held(address: string): number {
    return this.#counts.of(addressOwner(address));
  }

  /** A seat for a client at `address`; null, and counted, when its address holds its share. */
  enter(address: string): Seat | null {
    const owner = addressOwner(address);
    if (this.#counts.of(owner) >= this.share) {
      this.refused += 1;
      return null;
    }
    this.#counts.add(owner);
    let held = true;
    return {
      leave: () => {
        if (!held) return;
        held = false;
        this.#counts.remove(owner);
      },
    };
  }
}
