import type { Packet } from '../media/packet.ts';
import { MILLISECONDS, rescale } from '../media/timebase.ts';
import type { DataTrack } from '../media/track.ts';
import type { SourceDataTrack, SourcePacket } from './ingest.ts';
import type { Timeline, TimelineTrack } from './timeline.ts';
import { commonFields, type TrackNormalizer } from './track-normalizer.ts';

/** Data: payloads as they are, in milliseconds. */
export class DataNormalizer implements TrackNormalizer {
  readonly track: DataTrack;
  readonly source: SourceDataTrack;
  readonly position: TimelineTrack;
  readonly #timeline: Timeline;

  constructor(source: SourceDataTrack, timeline: Timeline) {
    this.source = source;
    this.#timeline = timeline;
    this.position = timeline.addTrack(MILLISECONDS);
    this.track = { ...commonFields(source, 'Data', MILLISECONDS), type: 'data' };
  }

  isKeyframe(): boolean {
    return true;
  }

  normalize(packet: SourcePacket): Packet | null {
    const dts = rescale(packet.dts, this.source.timebase, MILLISECONDS);
    const placed = this.#timeline.place(this.position, dts, 0);
    return placed === null ? null : { track: this.track, pts: placed, dts: placed, duration: 0, keyframe: true, data: packet.data };
  }
}
