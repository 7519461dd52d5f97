/** Who follows the segments of a stream beside the egress threads. */
import type { SegmentModel, TrackModel } from '../../view/fmp4/stream-model.ts';

export interface SegmentObserver {
  /** A segment of `track` is complete and in memory: its bytes can be taken during this call. */
  segmentClosed(track: TrackModel, segment: SegmentModel): void;
  /** The stream is gone; every segment has been told. */
  streamEnded(): void;
}
