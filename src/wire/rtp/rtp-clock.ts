/** Brings the timestamps of the sources of one session onto one time, RFC 3550 §6.4.1. */
import type { SenderReport } from './rtcp-packet.ts';

/** The clock of one source: 32 bits that begin anywhere. */
export class RtpClock {
  /** Ticks per second. */
  readonly rate: number;
  #last: number | null = null;
  /** Seconds of the session at tick 0 (which may lie before its beginning); null while unknown. */
  #base: number | null = null;

  constructor(rate: number) {
    this.rate = rate;
  }

  /** True when timestamps can be converted to seconds. */
  get synchronised(): boolean {
    return this.#base !== null;
  }

  /** A timestamp without wraps; the first remains as it is. Timestamps may step back by up to half of the range. */
  unwrap(timestamp: number): number {
    this.#last = this.#near(timestamp);
    return this.#last;
  }

  /** Assigns seconds of the session to a timestamp. */
  synchronise(timestamp: number, seconds: number): void {
    this.#base = seconds - this.#near(timestamp) / this.rate;
  }

  /** Takes over a sender report; the times of all sources of a session count from the same wall clock. */
  follow(report: SenderReport, originNtp: number): void {
    this.synchronise(report.rtpTimestamp, report.ntp - originNtp);
  }

  /** Seconds of the session for a timestamp that `unwrap` returned. */
  seconds(ticks: number): number {
    return (this.#base ?? 0) + ticks / this.rate;
  }

  /** Seconds of the session for a timestamp of 32 bits that may belong to no packet. */
  secondsAt(timestamp: number): number {
    return this.seconds(this.#near(timestamp));
  }

  /** The timestamp without wraps, the one nearest to the last; only the first timestamp becomes the last one here. */
  #near(timestamp: number): number {
    this.#last ??= timestamp;
    return this.#last + ((timestamp - this.#last) | 0);
  }
}
