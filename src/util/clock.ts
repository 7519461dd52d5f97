/** Where the server gets its time from: injected everywhere, so that tests can turn it by hand. */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. */
  now(): number;
  /** Monotonic clock, milliseconds (fractional) since an arbitrary start; never jumps. */
  monotonic(): number;
}

/** Read once in each callback of the event loop: one packet alone asks for the time a dozen times. NaN: not read yet. */
let wall = Number.NaN;
let ticks = Number.NaN;

/** Cheaper than `queueMicrotask`, which makes an asynchronous resource each time. */
const settled = Promise.resolve();

function forget(): void {
  wall = Number.NaN;
  ticks = Number.NaN;
}

/** The clock of the running machine. It stands still while a callback runs. */
export const systemClock: Clock = {
  now: () => {
    if (Number.isNaN(wall)) {
      if (Number.isNaN(ticks)) void settled.then(forget);
      wall = Date.now();
    }
    return wall;
  },
  monotonic: () => {
    if (Number.isNaN(ticks)) {
      if (Number.isNaN(wall)) void settled.then(forget);
      ticks = performance.now();
    }
    return ticks;
  },
};
