/** When a packet is handed out: the sender's timestamp on our clock plus the latency, draft-sharabayko-srt-01 §4.5. All in µs. */

const DRIFT_SAMPLES = 1000;
/** More than this is not left to the latency to absorb. */
const DRIFT_TOLERANCE = 5000;

/** One for each receiving half. Told the time, it reads none itself. */
export class TsbpdClock {
  readonly latency: number;
  /** Our time when the sender's clock showed 0. */
  #base: number;
  #driftSum = 0;
  #driftCount = 0;
  #firstRtt: number | null = null;

  /** `timestamp` is that of the packet which concluded the handshake, seen at `now`. */
  constructor(now: number, timestamp: number, latency: number) {
    this.latency = latency;
    this.#base = now - timestamp;
  }

  /** The moment to hand out a packet with this (32-bit) timestamp that arrived at `now`. */
  dueTime(timestamp: number, now: number): number {
    return this.#sentAt(timestamp, now) + this.latency;
  }

  /** Follows the sender's clock, from the timestamp of an acknowledged acknowledgement and the round trip it took. */
  measureDrift(now: number, timestamp: number, rtt: number): void {
    this.#firstRtt ??= rtt;
    this.#driftSum += now - this.#sentAt(timestamp, now) - (rtt - this.#firstRtt) / 2;
    this.#driftCount += 1;
    if (this.#driftCount < DRIFT_SAMPLES) return;
    const drift = this.#driftSum / this.#driftCount;
    this.#driftSum = 0;
    this.#driftCount = 0;
    if (Math.abs(drift) > DRIFT_TOLERANCE) this.#base += drift;
  }

  /** Timestamps wrap every 71 minutes: meant is the moment nearest to now. */
  #sentAt(timestamp: number, now: number): number {
    const expected = Math.floor(now - this.#base);
    return this.#base + expected + ((timestamp - expected) | 0);
  }
}
