/** The growth of a figure: the straight line through its samples. */

/** A figure at a time. */
export interface Sample {
  /** Seconds. */
  readonly at: number;
  readonly value: number;
}

/** Rise of the least-squares line through `samples` from the first to the last; 0 for fewer than two. */
export function riseOf(samples: readonly Sample[]): number {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || samples.length < 2) return 0;
  const meanAt = samples.reduce((sum, { at }) => sum + at, 0) / samples.length;
  const meanValue = samples.reduce((sum, { value }) => sum + value, 0) / samples.length;
  const spread = samples.reduce((sum, { at }) => sum + (at - meanAt) ** 2, 0);
  const slope = samples.reduce((sum, { at, value }) => sum + (at - meanAt) * (value - meanValue), 0) / spread;
  return slope * (last.at - first.at);
}

/** The later half: caches and compiled code, which a server fills only once, are full by then. */
export function laterHalf(samples: readonly Sample[]): readonly Sample[] {
  return samples.slice(Math.floor(samples.length / 2));
}
