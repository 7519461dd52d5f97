import type { SegmentMark } from './segment-mark.ts';
import type { TimedEvent } from './timed-event.ts';
import type { Track } from './track.ts';

/**
 * One access unit (video) or frame (audio) as routed between sources and consumers. Immutable.
 * `pts`, `dts` and `duration` are in the timebase of the track; dts never decreases within a track.
 */
export interface Packet {
  readonly track: Track;
  readonly pts: number;
  readonly dts: number;
  readonly duration: number;
  /** A decoder can start here. Always true for audio. */
  readonly keyframe: boolean;
  /** H.264/H.265: NAL units behind 4-byte lengths. AAC: raw. Never copied; never written to. */
  readonly data: Uint8Array;
  /** Kind of an event on a data track. Absent from all media, and from ID3 tags of the source. */
  readonly event?: TimedEvent;
  /** A segment begins with this packet at the server that sent it, which numbers the stream. Mostly absent. */
  readonly mark?: SegmentMark;
}
