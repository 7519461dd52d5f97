import { describeAudio } from '../codecs/describe.ts';
import { AudioCodec } from '../media/codec.ts';
import type { Packet } from '../media/packet.ts';
import { rescale, type Timebase } from '../media/timebase.ts';
import type { AudioTrack } from '../media/track.ts';
import type { SourceAudioTrack, SourcePacket } from './ingest.ts';
import type { Timeline, TimelineTrack } from './timeline.ts';
import { commonFields, type TrackNormalizer } from './track-normalizer.ts';

/** Audio whose timestamps are off by less than this, seconds, is taken as gapless. */
const AUDIO_TOLERANCE_S = 0.003;
const DEFAULT_AUDIO_FRAME = 1024;
/** RFC 6381 strings of tracks without a configuration. */
const CODEC_STRINGS: Readonly<Record<AudioCodec, string>> = {
  [AudioCodec.AAC]: 'mp4a.40.2',
  [AudioCodec.OPUS]: 'opus',
  [AudioCodec.MP3]: 'mp4a.40.34',
  [AudioCodec.PCMU]: 'ulaw',
  [AudioCodec.PCMA]: 'alaw',
};

/** Audio: frames back to back, in ticks of a sample. Throws `ProtocolError` for a broken configuration. */
export class AudioNormalizer implements TrackNormalizer {
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
      ...commonFields(source, 'Audio', this.#timebase),
      type: 'audio',
      codec: source.codec,
      sampleRate,
      channels,
      config: source.config,
      codecString,
    };
  }
}
