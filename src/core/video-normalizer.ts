import { describeKeyframe, describeVideo, type VideoDescription } from '../codecs/describe.ts';
import type { Packet } from '../media/packet.ts';
import { MPEG_90K, rescale } from '../media/timebase.ts';
import type { VideoTrack } from '../media/track.ts';
import { type AccessUnitReader, accessUnitReader, routedConfig } from './access-unit.ts';
import type { SourcePacket, SourceVideoTrack } from './ingest.ts';
import type { Timeline, TimelineTrack } from './timeline.ts';
import { commonFields, type TrackNormalizer } from './track-normalizer.ts';

const DEFAULT_FRAMERATE = 30;
/** Frames over which their distance is smoothed. */
const FRAMERATE_MEMORY = 8;
/** Two consecutive frame distances that differ by less than this share give the frame rate, whatever it was before. */
const ALIKE = 0.2;

/** Video: access units of one layout, and the parameters that keyframes bring. Throws `ProtocolError` for a broken configuration. */
export class VideoNormalizer implements TrackNormalizer {
  track: VideoTrack | null = null;
  readonly source: SourceVideoTrack;
  readonly position: TimelineTrack;
  readonly #timeline: Timeline;
  readonly #reader: AccessUnitReader;
  #config: Uint8Array | null;
  /** Expected ticks between frames, smoothed. */
  #frameTicks: number;
  /** Distances in `#frameTicks`; the declared frame rate counts as one distance, because many sources declare a wrong one. */
  #distances: number;
  #lastSourceDts = Number.NaN;
  #lastDistance = 0;

  constructor(source: SourceVideoTrack, timeline: Timeline) {
    this.source = source;
    this.#timeline = timeline;
    this.#reader = accessUnitReader(source);
    this.#config = routedConfig(source);
    this.#frameTicks = MPEG_90K.den / (source.framerateConf || DEFAULT_FRAMERATE);
    this.#distances = source.framerateConf > 0 ? 1 : 0;
    if (this.#config !== null) this.track = this.#trackOf(describeVideo(source.codec, this.#config), this.#config);
    // At the end of the constructor, so that a track that cannot be read leaves nothing in the timeline.
    this.position = timeline.addTrack(MPEG_90K);
  }

  isKeyframe(packet: SourcePacket): boolean {
    return packet.keyframe ?? this.#reader.isKeyframe(this.#reader.read(packet.data));
  }

  normalize(packet: SourcePacket): Packet | null {
    const data = this.#reader.read(packet.data);
    if (data.length === 0) return null;
    const keyframe = packet.keyframe ?? this.#reader.isKeyframe(data);
    if (keyframe) this.#followParameters(data);
    if (this.track === null) return null;
    const dts = rescale(packet.dts, this.source.timebase, MPEG_90K);
    const composition = rescale(packet.pts, this.source.timebase, MPEG_90K) - dts;
    this.#learnFrameTicks(dts);
    const told = packet.duration === undefined ? this.#frameTicks : rescale(packet.duration, this.source.timebase, MPEG_90K);
    const duration = Math.max(1, Math.round(told));
    const placed = this.#timeline.place(this.position, dts, duration, 0, composition);
    if (placed === null) return null;
    return { track: this.track, pts: placed + composition, dts: placed, duration, keyframe, data };
  }

  #learnFrameTicks(dts: number): void {
    const delta = dts - this.#lastSourceDts;
    this.#lastSourceDts = dts;
    if (!(delta > 0 && delta < MPEG_90K.den * 2)) return;
    this.#distances = Math.min(this.#distances + 1, FRAMERATE_MEMORY);
    const steady = isAlike(delta, this.#lastDistance) && !isAlike(delta, this.#frameTicks);
    this.#frameTicks = steady ? delta : this.#frameTicks + (delta - this.#frameTicks) / this.#distances;
    this.#lastDistance = delta;
  }

  /** Reads parameters from a keyframe: in-band parameter sets, or the frame size of VP8 and VP9. */
  #followParameters(data: Uint8Array): void {
    const described = describeKeyframe(this.source.codec, data);
    if (described !== null) {
      const track = this.#trackOf(described, this.#config);
      if (this.track === null || this.track.width !== track.width || this.track.height !== track.height) this.track = track;
      return;
    }
    const config = this.#reader.configOf(data, this.#config);
    if (config === null || config === this.#config) return;
    this.track = this.#trackOf(describeVideo(this.source.codec, config), config);
    this.#config = config;
  }

  #trackOf(described: VideoDescription, config: Uint8Array | null): VideoTrack {
    const own = { width: described.width || this.source.width, height: described.height || this.source.height };
    const { width, height } = this.source.fullSize ?? own;
    // A frame larger than announced (a turned camera, for example) keeps its own size.
    const size = own.width <= width && own.height <= height ? { width, height } : own;
    return {
      ...commonFields(this.source, 'Video', MPEG_90K),
      type: 'video',
      codec: this.source.codec,
      ...size,
      framerateConf: this.source.framerateConf || described.framerate,
      config,
      codecString: described.codecString,
    };
  }
}

function isAlike(distance: number, other: number): boolean {
  return Math.abs(distance - other) <= distance * ALIKE;
}
