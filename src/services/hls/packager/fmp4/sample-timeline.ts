/** Puts packets on the integer timeline of their fMP4 track. */
import { AudioCodec } from '../../../../media/codec.ts';
import type { Packet } from '../../../../media/packet.ts';
import type { SegmentMark } from '../../../../media/segment-mark.ts';
import { rescale, type Timebase, toMilliseconds, toSeconds } from '../../../../media/timebase.ts';
import type { AudioTrack, VideoTrack } from '../../../../media/track.ts';

/** A packet in the timescale of its fragments. */
export interface TimedSample {
  readonly dts: number;
  readonly duration: number;
  /** pts − dts. */
  readonly compositionOffset: number;
  readonly keyframe: boolean;
  readonly data: Uint8Array;
  /** Presentation time in ms on the timeline of the stream. */
  readonly time: number;
  /** The mark of the packet. */
  readonly mark: SegmentMark | undefined;
}

/** `place` wants the packets of one track in decoding order; `timescale` counts ticks per second. */
export interface SampleTimeline {
  readonly timescale: number;
  /** Ticks by which a timestamp of the source may be off because its clock is coarse. */
  readonly jitter: number;
  place(packet: Packet): TimedSample;
}

const DEFAULT_FRAME_RATE = 30;
/** The rounding of finer clocks is negligible. */
const COARSE_TICKS_PER_SECOND = 10_000;

/** Makes the timeline for `track`. `offset` (ms) is added to every time, so that none is negative. */
export function createTimeline(track: VideoTrack | AudioTrack, offset: number): SampleTimeline {
  return track.type === 'video' ? new VideoTimeline(track, offset) : new AudioTimeline(track, offset);
}

/** Duration of each sample, ticks: until the next sample; of the last sample, the duration of its packet. */
export function frameDurations(samples: readonly TimedSample[]): number[] {
  return samples.map((sample, index) => {
    const next = samples[index + 1];
    return next === undefined ? sample.duration : next.dts - sample.dts;
  });
}

/** Video keeps the timebase of its source, because only its timestamps tell the frame rate. */
class VideoTimeline implements SampleTimeline {
  readonly timescale: number;
  readonly jitter: number;
  readonly #timebase: Timebase;
  readonly #unit: number;
  readonly #offset: number;
  #lastDuration: number;

  constructor(track: VideoTrack, offset: number) {
    this.#timebase = track.timebase;
    this.timescale = track.timebase.den;
    this.#unit = track.timebase.num;
    this.jitter = this.timescale / this.#unit < COARSE_TICKS_PER_SECOND ? this.#unit : 0;
    this.#offset = rescale(offset, { num: 1, den: 1000 }, track.timebase);
    this.#lastDuration = Math.max(1, Math.round(this.timescale / this.#unit / (track.framerateConf || DEFAULT_FRAME_RATE)));
  }

  place(packet: Packet): TimedSample {
    if (packet.duration > 0) this.#lastDuration = packet.duration;
    return {
      dts: (packet.dts + this.#offset) * this.#unit,
      duration: this.#lastDuration * this.#unit,
      compositionOffset: (packet.pts - packet.dts) * this.#unit,
      keyframe: packet.keyframe,
      data: packet.data,
      time: toMilliseconds(packet.pts, this.#timebase),
      mark: packet.mark,
    };
  }
}

/** Samples a frame may have: AAC (LC, HE at output rate, LD), MP3, Opus in 48 kHz ticks. */
const FRAME_SIZES: Readonly<Record<AudioCodec, readonly number[]>> = {
  [AudioCodec.AAC]: [1024, 2048, 960, 1920, 512, 480],
  [AudioCodec.MP3]: [1152, 576],
  [AudioCodec.OPUS]: [960, 120, 240, 480, 1920, 2880],
  [AudioCodec.PCMU]: [],
  [AudioCodec.PCMA]: [],
};
/** Maximum difference between a duration and the frame size that it counts as: the coarsest clocks count milliseconds. */
const SNAP_SECONDS = 0.0012;
/** A duration further than this from the present frame size makes the timeline look for another size. */
const KEEP_SECONDS = 0.006;
/** Maximum drift between counted samples and the time of the source; beyond it the time of the source counts. */
const DRIFT_SECONDS = 0.012;

/**
 * Audio counts samples: frames have a fixed number of them, so that millisecond timestamps (RTMP)
 * neither stretch nor overlap frames. A real gap or drift shows and is followed.
 */
class AudioTimeline implements SampleTimeline {
  readonly timescale: number;
  readonly jitter = 0;
  readonly #track: AudioTrack;
  readonly #offset: number;
  #next: number | null = null;
  #frameSize = 0;

  constructor(track: AudioTrack, offset: number) {
    this.#track = track;
    this.timescale = track.codec === AudioCodec.OPUS || track.sampleRate <= 0 ? 48_000 : track.sampleRate;
    this.#offset = offset / 1000;
  }

  place(packet: Packet): TimedSample {
    const duration = this.#samples(packet);
    const seconds = toSeconds(packet.pts, this.#track.timebase) + this.#offset;
    const measured = Math.round(seconds * this.timescale);
    const counted = this.#next ?? measured;
    const dts = Math.abs(measured - counted) > DRIFT_SECONDS * this.timescale ? measured : counted;
    this.#next = dts + duration;
    return {
      dts,
      duration,
      compositionOffset: 0,
      keyframe: true,
      data: packet.data,
      time: (dts / this.timescale - this.#offset) * 1000,
      mark: packet.mark,
    };
  }

  #samples(packet: Packet): number {
    const sizes = FRAME_SIZES[this.#track.codec];
    const raw = toSeconds(packet.duration, this.#track.timebase) * this.timescale;
    if (this.#frameSize > 0 && Math.abs(this.#frameSize - raw) <= KEEP_SECONDS * this.timescale) return this.#frameSize;
    if (raw <= 0) return this.#frameSize || (sizes[0] ?? Math.round(this.timescale / 50));
    const size = sizes.find((candidate) => Math.abs(candidate - raw) <= SNAP_SECONDS * this.timescale);
    this.#frameSize = size ?? Math.max(1, Math.round(raw));
    return this.#frameSize;
  }
}
