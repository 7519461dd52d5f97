/** Ticks are counted in `num / den` seconds. */
export interface Timebase {
  readonly num: number;
  readonly den: number;
}

/** The clock of RTMP, and of data tracks. */
export const MILLISECONDS: Timebase = { num: 1, den: 1000 };
/** The clock of MPEG: a common multiple of the usual frame rates. */
export const MPEG_90K: Timebase = { num: 1, den: 90_000 };

/** Converts `ticks` of `from` to the nearest tick of `to`. */
export function rescale(ticks: number, from: Timebase, to: Timebase): number {
  if (from.num === to.num && from.den === to.den) return ticks;
  return Math.round((ticks * from.num * to.den) / (from.den * to.num));
}

/** Ticks as seconds. */
export function toSeconds(ticks: number, timebase: Timebase): number {
  return (ticks * timebase.num) / timebase.den;
}

/** Ticks as milliseconds (fractional). */
export function toMilliseconds(ticks: number, timebase: Timebase): number {
  return (ticks * timebase.num * 1000) / timebase.den;
}
