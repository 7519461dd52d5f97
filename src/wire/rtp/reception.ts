/** Figures of receiver reports, RFC 3550 §6.4.1 and §A.8. */
import type { ReceptionReport } from './rtcp-packet.ts';

/** The reordering buffer, which counts the missing packets. */
interface Ordered {
  readonly counters: { readonly received: number; readonly lost: number };
  /** Sequence number with its wraps in the upper 16 bits. */
  readonly highest: number;
}

/** One source in receiver reports. */
export class Reception {
  readonly #clockRate: number;
  #jitter = 0;
  #transit: number | null = null;
  #received = 0;
  #lost = 0;
  /** The last sender report, and its time of arrival. */
  #senderReport: { readonly compactNtp: number; readonly atMs: number } | null = null;

  constructor(clockRate: number) {
    this.#clockRate = clockRate;
  }

  /** Interarrival jitter, clock ticks. */
  get jitter(): number {
    return Math.round(this.#jitter);
  }

  arrived(timestamp: number, atMs: number): void {
    const transit = (atMs * this.#clockRate) / 1000 - timestamp;
    const step = this.#transit === null ? 0 : Math.abs(transit - this.#transit);
    this.#transit = transit;
    // A step of seconds is a wrap or another clock, not jitter.
    if (step < this.#clockRate * 2) this.#jitter += (step - this.#jitter) / 16;
  }

  /** Share of packets lost since the last call, 1/256. */
  fractionLost({ received, lost }: { readonly received: number; readonly lost: number }): number {
    // A counter that is below its last value has restarted from zero.
    const newLost = Math.max(0, lost - this.#lost);
    const expected = Math.max(0, received - this.#received) + newLost;
    this.#received = received;
    this.#lost = lost;
    return expected === 0 ? 0 : Math.min(255, Math.floor((newLost * 256) / expected));
  }

  senderReport(compactNtp: number, atMs: number): void {
    this.#senderReport = { compactNtp, atMs };
  }

  /** The reception report for source `ssrc`. */
  report(ssrc: number, { counters, highest }: Ordered, atMs: number): ReceptionReport {
    const last = this.#senderReport;
    return {
      ssrc,
      fractionLost: this.fractionLost(counters),
      totalLost: counters.lost,
      highestSequence: highest,
      jitter: this.jitter,
      lastReport: last?.compactNtp ?? 0,
      delaySinceLastReport: last === null ? 0 : Math.round(((atMs - last.atMs) * 65_536) / 1000),
    };
  }
}
