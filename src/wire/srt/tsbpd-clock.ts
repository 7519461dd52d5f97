/** Times at which packets are passed on: the sender's timestamp on our clock plus the latency, draft-sharabayko-srt-01 §4.5. All in µs. */

const DRIFT_SAMPLES = 1000;
/** A larger drift is corrected; a smaller one is within the latency. */
const DRIFT_TOLERANCE = 5000;

/** One for each receiving half. It reads no clock: its callers pass the time. */
export class TsbpdClock {
  readonly latency: number;
  /** Time on our clock at which the sender's clock showed 0. */
  #base: number;
  #driftSum = 0;
  #driftCount = 0;
  #firstRtt: number | null = null;

  /** `timestamp` is in the packet that concluded the handshake, which arrived at `now`. */
  constructor(now: number, timestamp: number, latency: number) {
    this.latency = latency;
    this.#base = now - timestamp;
  }

  /** The time at which a packet with this timestamp (32 bits) that arrived at `now` must be passed on. */
  dueTime(timestamp: number, now: number): number {
    return this.#sentAt(timestamp, now) + this.latency;
  }

  /** Follows the sender's clock, by the timestamp of an answer to an acknowledgement and the measured round trip. */
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

  /** Timestamps wrap every 71 minutes; this is the time nearest to `now`. */
  #sentAt(timestamp: number, now: number): number {
    const expected = Math.floor(now - this.#base);
    return this.#base + expected + ((timestamp - expected) | 0);
  }
}
