/** Live congestion control, draft-sharabayko-srt-01 §5.1: packets are spread so that a bandwidth is not exceeded. */
import { HEADER_LENGTH, LIVE_PAYLOAD_LENGTH } from './header.ts';

/** Bytes of the IPv4 and UDP headers. */
const LOWER_HEADERS = 28;
const SIZE_SMOOTHING = 128;
/** Timers are coarse: packets that were due within this time may be sent at once, µs. */
const BURST = 20_000;
const MEASURE_INTERVAL = 1_000_000;

/** Limits of the bandwidth for sending. */
export interface SendBandwidth {
  /** Bytes per second, all headers included; 0 derives it from the input. */
  readonly maximum: number;
  /** Bytes per second of media, for `maximum` 0; 0 measures it. */
  readonly input: number;
  /** Per cent on top of the input for retransmissions. */
  readonly overhead: number;
}

/** One gigabit per second, the default of every SRT program. */
export const DEFAULT_BANDWIDTH: SendBandwidth = { maximum: 125_000_000, input: 0, overhead: 25 };
/** Lower bound of a bandwidth derived from the input, bytes per second. */
const MIN_BANDWIDTH = 125_000;

/** One for each sending half; times are µs. Computes departure times and holds no packets. */
export class LivePacer {
  readonly #limit: SendBandwidth;
  #averageSize = LIVE_PAYLOAD_LENGTH;
  #nextAt = 0;
  #inputBytes = 0;
  #inputRate = 0;
  #measuredAt = -1;

  constructor(limit: SendBandwidth) {
    this.#limit = limit;
  }

  /** Counts a payload of the application, handed over at `now` µs. */
  countInput(bytes: number, now: number): void {
    this.#averageSize += (bytes - this.#averageSize) / SIZE_SMOOTHING;
    if (this.#measuredAt < 0) this.#measuredAt = now;
    this.#inputBytes += bytes + HEADER_LENGTH + LOWER_HEADERS;
    const elapsed = now - this.#measuredAt;
    if (elapsed < MEASURE_INTERVAL) return;
    this.#inputRate = (this.#inputBytes * 1_000_000) / elapsed;
    this.#inputBytes = 0;
    this.#measuredAt = now;
  }

  /** True when a packet may be sent at `now`. */
  mayStart(now: number): boolean {
    return now >= this.#nextAt;
  }

  /** Earliest time of the next packet, µs. */
  get nextAt(): number {
    return this.#nextAt;
  }

  /** Counts a sent packet. */
  started(now: number): void {
    this.#nextAt = Math.max(this.#nextAt, now - BURST) + this.#period;
  }

  /** µs between packets. */
  get #period(): number {
    return ((this.#averageSize + HEADER_LENGTH + LOWER_HEADERS) * 1_000_000) / this.bandwidth;
  }

  /** Bytes per second allowed now. */
  get bandwidth(): number {
    const { maximum, input, overhead } = this.#limit;
    if (maximum > 0) return maximum;
    const known = input > 0 ? input : this.#inputRate;
    // The input rate is unknown in the first second, in which the input is not held back.
    return known === 0 ? DEFAULT_BANDWIDTH.maximum : Math.max(MIN_BANDWIDTH, (known * (100 + overhead)) / 100);
  }
}
