/** Who follows the segments of a stream beside the egress threads. */
import type { HlsSegment } from '../../wire/ts/updates.ts';

export interface SegmentObserver {
  /** A segment is complete. `read` copies its bytes during this call. */
  segmentFinished(variant: string, segment: HlsSegment, read: () => Buffer): void;
  /** The stream is gone; every segment has been told. */
  streamEnded(): void;
}
