/** Who wants to know of the streams of a publisher. */
import type { DumpsSettings, StreamAddress } from '../dump/wanted-dumps.ts';
import type { SegmentSource } from './segment-observer.ts';

/** Told by the publisher, which has one at most. */
export interface StreamFollower {
  /** It has tracks and playlists. */
  streamStarted(stream: SegmentSource, address: StreamAddress, settings: { readonly dumps?: DumpsSettings }): void;
  streamClosed(stream: SegmentSource, address: StreamAddress): void;
}
