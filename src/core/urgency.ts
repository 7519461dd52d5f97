/** How soon those who take a stream need its packets: what may wait is read in bundles, which costs less. */
export const Urgency = {
  /** Nobody waits: a bundle ten times a second will do. */
  NONE: 0,
  /**
   * Low latency: somebody waits for what is made of many packets, as parts of LL-HLS are, and a hundredth of a second does not matter. Who
   * knows which packet completes it says when that is due (`neededAt`); those before can come with it.
   */
  LOW_LATENCY: 1,
  /** Each packet is wanted as soon as it comes. */
  REAL_TIME: 2,
} as const;
/** Any of these; the greatest of all who take a stream counts. */
export type Urgency = (typeof Urgency)[keyof typeof Urgency];

/** The greater of two. */
export function mostUrgent(a: Urgency, b: Urgency): Urgency {
  return a > b ? a : b;
}
