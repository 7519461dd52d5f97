/** Finds peers that keep their connection but read nothing: their system still answers, so no timer of a socket expires. */
import type { Duplex } from 'node:stream';

/** Watches one connection. Call `isStalled` regularly. */
export class StallGuard {
  readonly #stream: Duplex & { readonly bytesWritten?: number };
  readonly #limit: number;
  #taken = -1;
  #since = 0;

  /** `limit`: time, ms, in which waiting bytes may go untaken. */
  constructor(stream: Duplex, limit: number) {
    this.#stream = stream;
    this.#limit = limit;
  }

  /** Whether bytes have waited for longer than the limit, and the peer has taken none. `now`: monotonic, ms. */
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
