/** Rereads settings that depend on the addresses of this machine when the addresses change. */
import { networkInterfaces } from 'node:os';
import type { Clock } from '../../../util/clock.ts';

/** Minimum time between two queries of the system, however many peers come, ms. */
const LOOK_INTERVAL_MS = 1000;

export class AddressWatch<T> {
  readonly #read: () => T;
  readonly #clock: Clock;
  #value: T;
  #addresses: string;
  #lookedAt: number;

  /** `read` must not throw once it has returned. */
  constructor(read: () => T, clock: Clock) {
    this.#read = read;
    this.#clock = clock;
    this.#addresses = ownAddresses();
    this.#value = read();
    this.#lookedAt = clock.monotonic();
  }

  /** The very value of the last call as long as nothing has changed. */
  get value(): T {
    const now = this.#clock.monotonic();
    if (now - this.#lookedAt < LOOK_INTERVAL_MS) return this.#value;
    this.#lookedAt = now;
    const addresses = ownAddresses();
    if (addresses === this.#addresses) return this.#value;
    this.#addresses = addresses;
    this.#value = this.#read();
    return this.#value;
  }
}

function ownAddresses(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
  return addresses.sort().join(' ');
}
