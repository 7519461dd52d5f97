/** Who wants to know of the streams of a publisher. */
import type { StreamAddress } from '../../../core/stream-address.ts';
import type { PackagingSettings } from '../wire/settings.ts';
import type { SegmentSource } from './segment-observer.ts';

/** Told by the publisher, which has one at most. */
export interface StreamFollower {
  /** It has tracks and playlists. */
  streamStarted(stream: SegmentSource, address: StreamAddress, settings: PackagingSettings): void;
  streamClosed(stream: SegmentSource, address: StreamAddress): void;
}
