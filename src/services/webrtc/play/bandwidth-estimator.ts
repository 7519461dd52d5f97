/**
 * Estimates the bandwidth of the path to a viewer, from departure and arrival times of packets.
 *
 * The path is judged once a second. Video is sent in bursts, so a queue that fills and empties again means nothing. A queue that does not
 * empty for a second while it grows or overflows means that the path is full: its bandwidth is the arrival rate. Otherwise up to half as
 * much again may be possible.
 */
import { ARRIVAL_WRAP_US, type ArrivalReport } from '../../../wire/rtp/arrival-report.ts';

const WINDOW_US = 1_000_000;
/** Minimum of packets for a judgement. */
const MIN_PACKETS = 10;
/** Seconds over which the shortest delay counts as that of the empty path. */
const BASE_WINDOWS = 30;
/** A delay this much longer than that of the empty path is a queue. */
const QUEUE_US = 50_000;
/** Growth of the delay in a second, as a share of it, that makes a queue too long. */
const GROWTH = 0.05;
/** Loss that shows that a queue overflows, and loss without a queue that is too much. */
const OVERFLOW_LOSS = 0.02;
const HEAVY_LOSS = 0.1;
const HEADROOM = 1.5;
/** A larger step of a clock is a restart. */
const RESTART_US = 10_000_000;
const SEQUENCES = 0x1_0000;

/** Sums of about a second. Times in µs. */
interface Window {
  /** Arrivals. */
  readonly from: number;
  readonly firstDelay: number;
  lastDelay: number;
  least: number;
  until: number;
  packets: number;
  lost: number;
  bytes: number;
}

/** One for each viewer that reports arrivals (transport-wide congestion control). Has no timer. */
export class BandwidthEstimator {
  /** Bits per second; null before the first second. */
  #estimate: number | null = null;
  #window: Window | null = null;
  /** Shortest delay of each of the last windows, oldest first. */
  #bases: number[] = [];
  /** The last packet that came, past the wraps of both clocks; null before the first. */
  #last: { sent: number; arrived: number } | null = null;
  /** Unwrapped number of the newest reported packet; -1 before the first. */
  #newest = -1;

  get estimate(): number | null {
    return this.#estimate;
  }

  /**
   * Processes a report of the viewer. `sends`: pairs of µs and bytes for the packets in `report`, from the fanout. `demand`: declared bit
   * rate of the present media. Returns a new estimate, or null if there is none.
   */
  report({ first, arrivals }: ArrivalReport, sends: Uint32Array, demand: number): number | null {
    let judged: number | null = null;
    for (let n = 0; n < arrivals.length; n += 1) {
      const bytes = sends[2 * n + 1] ?? 0;
      const arrival = arrivals[n] ?? Number.NaN;
      if (bytes === 0) continue;
      const isNew = this.#advance((first + n) % SEQUENCES);
      if (Number.isNaN(arrival)) {
        if (isNew && this.#window !== null) this.#window.lost += 1;
        continue;
      }
      // It was reported as lost, and came late.
      if (!isNew && this.#window !== null) this.#window.lost = Math.max(0, this.#window.lost - 1);
      judged = this.#arrive(sends[2 * n] ?? 0, arrival, bytes, demand) ?? judged;
    }
    if (judged !== null) this.#estimate = judged;
    return judged;
  }

  /** True for a packet without an earlier report. */
  #advance(sequence: number): boolean {
    if (this.#newest < 0) {
      this.#newest = sequence;
      return true;
    }
    const step = ((sequence - this.#newest) << 16) >> 16;
    if (step <= 0) return false;
    this.#newest += step;
    return true;
  }

  #arrive(sent: number, arrival: number, bytes: number, demand: number): number | null {
    const { sent: sentAt, arrived } = this.#follow(sent, arrival);
    const delay = arrived - sentAt;
    const window = this.#window;
    if (window === null) {
      this.#window = newWindow(arrived, delay, bytes);
      return null;
    }
    if (arrived - window.from < WINDOW_US || window.packets < MIN_PACKETS) {
      window.packets += 1;
      window.bytes += bytes;
      window.least = Math.min(window.least, delay);
      window.lastDelay = delay;
      window.until = Math.max(window.until, arrived);
      return null;
    }
    this.#window = newWindow(arrived, delay, bytes);
    return this.#judge(window, demand);
  }

  #judge(window: Window, demand: number): number | null {
    this.#bases = [...this.#bases.slice(1 - BASE_WINDOWS), window.least];
    const span = Math.max(1, window.until - window.from);
    const carried = (window.bytes * 8 * 1e6) / span;
    const loss = window.lost / (window.lost + window.packets);
    const isQueue = window.least - Math.min(...this.#bases) > QUEUE_US;
    const isGrowing = window.lastDelay - window.firstDelay > GROWTH * span;
    if (isQueue) return isGrowing || loss > OVERFLOW_LOSS ? carried : this.#estimate;
    const needed = Math.max(demand, carried);
    return loss > HEAVY_LOSS ? needed * (1 - loss / 2) : needed * HEADROOM;
  }

  /** Both times unwrapped. After a jump of a clock delays cannot be compared with earlier delays. */
  #follow(sent: number, arrival: number): { readonly sent: number; readonly arrived: number } {
    const last = this.#last;
    if (last !== null) {
      const sentStep = (sent - last.sent) | 0;
      const arrivedStep = wrapped(arrival - (last.arrived % ARRIVAL_WRAP_US), ARRIVAL_WRAP_US);
      if (Math.abs(sentStep) <= RESTART_US && Math.abs(arrivedStep) <= RESTART_US) {
        last.sent += sentStep;
        last.arrived += arrivedStep;
        return last;
      }
    }
    this.#window = null;
    this.#bases = [];
    this.#last = { sent, arrived: arrival };
    return this.#last;
  }
}

function newWindow(from: number, delay: number, bytes: number): Window {
  return { from, firstDelay: delay, lastDelay: delay, least: delay, until: from, packets: 1, lost: 0, bytes };
}

/** `step` between two times of a clock that wraps, as the shorter way round. */
function wrapped(step: number, wrap: number): number {
  if (step > wrap / 2) return step - wrap;
  return step < -wrap / 2 ? step + wrap : step;
}
