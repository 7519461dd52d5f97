/** The limit for a publisher without an estimate of its own (REMB), from received and lost packets. */

const START_BPS = 3_000_000;
const MIN_BPS = 150_000;
const MAX_BPS = 50_000_000;
/** Share of lost packets below which there is room, and above which there is none. */
const LITTLE_LOSS = 0.02;
const MUCH_LOSS = 0.1;
const GROWTH = 1.08;
/** The limit stays within this multiple of the received rate: higher rates are unproven. */
const HEADROOM = 2;

/** One for each publisher: counts every packet, computes each REMB. Grows slowly, falls at once. */
export class BandwidthLimit {
  #limit = START_BPS;
  #bytes = 0;
  #last = { received: 0, lost: 0 };

  received(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Bits per second after `intervalMs`; packets since the start, lost packets before their repair. */
  evaluate(intervalMs: number, packets: { readonly received: number; readonly lost: number }): number {
    const rate = (this.#bytes * 8000) / Math.max(1, intervalMs);
    const lost = Math.max(0, packets.lost - this.#last.lost);
    const received = Math.max(0, packets.received - this.#last.received);
    this.#bytes = 0;
    this.#last = packets;
    const share = lost / Math.max(1, lost + received);
    if (share > MUCH_LOSS) this.#limit = rate * (1 - share / 2);
    else if (share < LITTLE_LOSS) this.#limit = Math.max(Math.min(this.#limit * GROWTH, HEADROOM * rate), Math.min(this.#limit, START_BPS));
    this.#limit = Math.min(MAX_BPS, Math.max(MIN_BPS, this.#limit));
    return this.#limit;
  }
}
