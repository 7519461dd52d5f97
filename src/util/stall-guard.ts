/** Finds peers that are there and take nothing: the system answers for them, so that no timer of a socket runs out. */
import type { Duplex } from 'node:stream';

/** For one connection. Ask it regularly. */
export class StallGuard {
  readonly #stream: Duplex & { readonly bytesWritten?: number };
  readonly #limit: number;
  #taken = -1;
  #since = 0;

  /** `limit`: ms without any byte taken while some wait. */
  constructor(stream: Duplex, limit: number) {
    this.#stream = stream;
    this.#limit = limit;
  }

  /** Whether bytes have waited for longer than the limit and none of them was taken. `now`: monotonic, ms. */
  isStalled(now: number): boolean {
    const { writableLength, bytesWritten = 0 } = this.#stream;
    const taken = bytesWritten - writableLength;
    if (writableLength === 0 || taken !== this.#taken) {
      this.#taken = taken;
      this.#since = now;
      return false;
    }
    return now - this.#since > this.#limit;
  }
}
