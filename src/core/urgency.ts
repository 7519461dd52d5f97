/** How soon the consumers of a stream need its packets; packets that can wait are read in batches, which costs less. */
export const Urgency = {
  /** No viewer waits: one batch every 200 ms is enough. */
  NONE: 0,
  /** Files are written, and data waiting in a socket is lost with the process: one batch every 100 ms. */
  BATCHED: 1,
  /**
   * Low latency: consumers wait for units of many packets, such as LL-HLS parts, and 25 ms more do not matter. A consumer that knows which
   * packet completes a unit reports its time (`neededAt`); earlier packets can come with that one.
   */
  LOW_LATENCY: 2,
  /** Each packet is wanted as soon as it comes. */
  REAL_TIME: 3,
} as const;
/** Any of these values; for a stream, the greatest value of its consumers counts. */
export type Urgency = (typeof Urgency)[keyof typeof Urgency];

/** The greater of two. */
export function mostUrgent(a: Urgency, b: Urgency): Urgency {
  return a > b ? a : b;
}
