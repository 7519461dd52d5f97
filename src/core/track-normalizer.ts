import { describeAudio, describeKeyframe, describeVideo, type VideoDescription } from '../codecs/describe.ts';
import { AudioCodec } from '../media/codec.ts';
import type { Packet } from '../media/packet.ts';
import { MILLISECONDS, MPEG_90K, rescale, type Timebase, toSeconds } from '../media/timebase.ts';
import type { AudioTrack, DataTrack, Track, VideoTrack } from '../media/track.ts';
import { type AccessUnitReader, accessUnitReader, routedConfig } from './access-unit.ts';
import type { SourceAudioTrack, SourceDataTrack, SourcePacket, SourceTrack, SourceVideoTrack } from './ingest.ts';
import type { Timeline, TimelineTrack } from './timeline.ts';

/** Audio whose timestamps are off by less than this, seconds, is taken as gapless. */
const AUDIO_TOLERANCE_S = 0.003;
const DEFAULT_FRAMERATE = 30;
/** Frames over which their distance is smoothed. */
const FRAMERATE_MEMORY = 8;
/** Two consecutive frame distances that differ by less than this share give the frame rate, whatever it was before. */
const ALIKE = 0.2;
const DEFAULT_AUDIO_FRAME = 1024;
/** RFC 6381 strings of tracks without a configuration. */
const CODEC_STRINGS: Readonly<Record<AudioCodec, string>> = {
  [AudioCodec.AAC]: 'mp4a.40.2',
  [AudioCodec.OPUS]: 'opus',
  [AudioCodec.MP3]: 'mp4a.40.34',
  [AudioCodec.PCMU]: 'ulaw',
  [AudioCodec.PCMA]: 'alaw',
};

/** Turns the packets of one source track into router packets: one layout per codec, clean timestamps, durations. */
export interface TrackNormalizer {
  /** The track as of the last packet; a new object after a parameter change. Null until its parameters are known. */
  readonly track: Track | null;
  readonly source: SourceTrack;
  readonly position: TimelineTrack;
  /** Null when the packet is dropped (nothing decodable yet, or before the start of the timeline). Throws ProtocolError for bad media. */
  normalize(packet: SourcePacket): Packet | null;
  /** Source timestamp in seconds, before the timeline. */
  sourceSeconds(packet: SourcePacket): number;
  /** The packet starts a decodable frame sequence. */
  isKeyframe(packet: SourcePacket): boolean;
}

/**
 * The normaliser for the kind of track, which takes its place on `timeline`. Throws `ProtocolError` when the configuration of the source
 * is broken.
 */
export function createNormalizer(source: SourceTrack, timeline: Timeline): TrackNormalizer {
  switch (source.type) {
    case 'video':
      return new VideoNormalizer(source, timeline);
    case 'audio':
      return new AudioNormalizer(source, timeline);
    case 'data':
      return new DataNormalizer(source, timeline);
  }
}

/** The part of a track that comes straight from its source. */
function commonOf(source: SourceTrack, word: string, timebase: Timebase) {
  return {
    id: source.id,
    publicName: source.publicName ?? `${word}_${source.id}`,
    variantName: source.variantName ?? '',
    timebase,
    bitrateConf: Math.round(source.bitrateConf),
    language: source.language ?? '',
    characteristics: source.characteristics ?? '',
    bypass: false,
  };
}

class VideoNormalizer implements TrackNormalizer {
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

  sourceSeconds(packet: SourcePacket): number {
    return toSeconds(packet.dts, this.source.timebase);
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
      ...commonOf(this.source, 'Video', MPEG_90K),
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

class AudioNormalizer implements TrackNormalizer {
  track: AudioTrack | null = null;
  readonly source: SourceAudioTrack;
  readonly position: TimelineTrack;
  readonly #timeline: Timeline;
  readonly #timebase: Timebase;
  readonly #tolerance: number;
  #frameTicks = DEFAULT_AUDIO_FRAME;

  constructor(source: SourceAudioTrack, timeline: Timeline) {
    this.source = source;
    this.#timeline = timeline;
    let sampleRate = source.sampleRate || 48_000;
    if (source.config !== null) {
      const described = describeAudio(source.codec, source.config);
      sampleRate = described.sampleRate || sampleRate;
      this.#frameTicks = described.samplesPerFrame || DEFAULT_AUDIO_FRAME;
      this.#timebase = { num: 1, den: sampleRate };
      this.track = this.#make(sampleRate, described.channels || source.channels, described.codecString);
    } else {
      this.#timebase = { num: 1, den: sampleRate };
      this.track = this.#make(sampleRate, source.channels, CODEC_STRINGS[source.codec]);
    }
    this.#tolerance = Math.round(sampleRate * AUDIO_TOLERANCE_S);
    this.position = timeline.addTrack(this.#timebase);
  }

  sourceSeconds(packet: SourcePacket): number {
    return toSeconds(packet.dts, this.source.timebase);
  }

  isKeyframe(): boolean {
    return true;
  }

  normalize(packet: SourcePacket): Packet | null {
    if (this.track === null || packet.data.length === 0) return null;
    const dts = rescale(packet.dts, this.source.timebase, this.#timebase);
    const duration = this.#durationOf(packet);
    const placed = this.#timeline.place(this.position, dts, duration, this.#tolerance);
    if (placed === null) return null;
    return { track: this.track, pts: placed, dts: placed, duration, keyframe: true, data: packet.data };
  }

  /** A sample of G.711 is a byte; the frames of other codecs all have the same length. */
  #durationOf({ data }: SourcePacket): number {
    const { codec, channels } = this.source;
    return codec === AudioCodec.PCMU || codec === AudioCodec.PCMA ? Math.ceil(data.length / (channels || 1)) : this.#frameTicks;
  }

  #make(sampleRate: number, channels: number, codecString: string): AudioTrack {
    const { source } = this;
    return {
      ...commonOf(source, 'Audio', this.#timebase),
      type: 'audio',
      codec: source.codec,
      sampleRate,
      channels,
      config: source.config,
      codecString,
    };
  }
}

class DataNormalizer implements TrackNormalizer {
  readonly track: DataTrack;
  readonly source: SourceDataTrack;
  readonly position: TimelineTrack;
  readonly #timeline: Timeline;

  constructor(source: SourceDataTrack, timeline: Timeline) {
    this.source = source;
    this.#timeline = timeline;
    this.position = timeline.addTrack(MILLISECONDS);
    this.track = { ...commonOf(source, 'Data', MILLISECONDS), type: 'data' };
  }

  sourceSeconds(packet: SourcePacket): number {
    return toSeconds(packet.dts, this.source.timebase);
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
