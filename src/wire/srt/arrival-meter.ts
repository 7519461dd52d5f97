/** Rate of arriving packets and capacity of the link, for full acknowledgements. */

const INTERVAL = 1_000_000;
/** Senders send the packet after every sequence number that ends in 0 (base 16) at once: the distance of the two shows the capacity. */
const PROBE_MASK = 15;
const SMOOTHING = 8;

/** One for each receiving half; times are µs. The capacity is measured on pairs of packets that senders send back to back. */
export class ArrivalMeter {
  /** Packets per second over the last whole second. */
  packetRate = 0;
  /** Bytes per second over the last whole second, headers included. */
  byteRate = 0;
  #since = 0;
  #packets = 0;
  #bytes = 0;
  #probeAt = -1;
  #probeGap = 0;

  /** Counts a packet that is no retransmission; `now` in µs. */
  count(sequence: number, bytes: number, now: number): void {
    this.#packets += 1;
    this.#bytes += bytes;
    if (now - this.#since >= INTERVAL) this.#measure(now);
    const step = sequence & PROBE_MASK;
    if (step === 0) this.#probeAt = now;
    else if (step === 1 && this.#probeAt >= 0) this.#probe(now - this.#probeAt);
    if (step !== 0) this.#probeAt = -1;
  }

  /** Packets per second that the link could carry; 0 if unknown. */
  get linkCapacity(): number {
    return this.#probeGap > 0 ? Math.round(1_000_000 / this.#probeGap) : 0;
  }

  #probe(gap: number): void {
    if (gap <= 0) return;
    this.#probeGap = this.#probeGap === 0 ? gap : this.#probeGap + (gap - this.#probeGap) / SMOOTHING;
  }

  #measure(now: number): void {
    const seconds = (now - this.#since) / 1_000_000;
    this.packetRate = Math.round(this.#packets / seconds);
    this.byteRate = Math.round(this.#bytes / seconds);
    this.#since = now;
    this.#packets = 0;
    this.#bytes = 0;
  }
}
