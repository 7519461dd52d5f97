/** The share of one client address in a resource that all clients share. */
import { addressOwner } from './client-address.ts';
import { OwnerCounts } from './owner-counts.ts';

/** A connection slot that a client holds. */
export interface AddressSlot {
  /** Gives the slot back. Idempotent. */
  leave(): void;
}

/** Numbers of slots. */
export interface ShareOptions {
  /** Slots of one address; an IPv6 /64 counts as one address. 0: all. */
  readonly perAddress: number;
  /**
   * Slots of all addresses; absent: counted elsewhere. Unless `perAddress` is 0, one address gets at most half, so no client can take all.
   */
  readonly total?: number;
}

/** Counts slots by address. Addresses without a slot are forgotten, so memory is bounded by the number of slots. */
export class AddressShares {
  /** Slots that one address may hold; infinite without limit. */
  readonly share: number;
  /** Slots refused since the start. */
  refused = 0;
  readonly #counts = new OwnerCounts();

  constructor({ perAddress, total = Number.POSITIVE_INFINITY }: ShareOptions) {
    const wanted = perAddress === 0 ? total : Math.min(perAddress, Math.ceil(total / 2));
    this.share = Math.max(1, wanted);
  }

  /** Slots that `address` holds. */
  held(address: string): number {
    return this.#counts.of(addressOwner(address));
  }

  /** A slot for a client at `address`; null, and counted, when the address holds its share. */
  enter(address: string): AddressSlot | null {
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
