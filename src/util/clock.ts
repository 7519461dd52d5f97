/** Where the server gets its time from: injected everywhere, so that tests can turn it by hand. */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. */
  now(): number;
  /** Monotonic clock, milliseconds (fractional) since an arbitrary start; never jumps. */
  monotonic(): number;
}

/** The clock of the running machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
