/** Maximum drift as a share of media time: more than clocks of encoders differ from ours. */
const MAX_DRIFT = 0.001;

/**
 * Wall clock of media time 0 for EXT-X-PROGRAM-DATE-TIME (rfc8216bis §4.4.4.6). Players align renditions by the date-time of some segment
 * and add up durations from there: in hls.js a jump within a playlist keeps audio from loading. So date-times follow a source that paused,
 * or that is slower than real time, by a thousandth of the media, and at once only at a discontinuity.
 */
export class DateTimes {
  readonly #epoch: () => number;
  #value: number | null = null;
  #time = 0;

  /** `epoch`: the present estimate, ms since the epoch; it may jump. */
  constructor(epoch: () => number) {
    this.#epoch = epoch;
  }

  /** The value for media at `time`, ms. Media from before the last call gets the same value. */
  epochAt(time: number, isDiscontinuity = false): number {
    const epoch = this.#epoch();
    if (this.#value === null || isDiscontinuity) {
      this.#value = epoch;
      this.#time = time;
    } else if (time > this.#time) {
      const step = MAX_DRIFT * (time - this.#time);
      this.#value = Math.min(Math.max(epoch, this.#value - step), this.#value + step);
      this.#time = time;
    }
    return this.#value;
  }
}
