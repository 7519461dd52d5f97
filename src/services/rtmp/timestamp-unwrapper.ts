/** Continues the 32-bit millisecond clock of RTMP past its wrap after 49.7 days. */
export class TimestampUnwrapper {
  #last: number | null = null;

  /** `timestamp` as written on the wire; steps of up to 2^31 ms either way are followed. */
  unwrap(timestamp: number): number {
    this.#last = this.#last === null ? timestamp : this.#last + ((timestamp - this.#last) | 0);
    return this.#last;
  }

  /** Continues another timestamp of the same clock, without a change of state. */
  near(timestamp: number): number {
    return this.#last === null ? timestamp : this.#last + ((timestamp - this.#last) | 0);
  }
}
