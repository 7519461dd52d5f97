/** The video of a file in a codec that players do not take: decoded, and encoded to H.264. */
import { BitstreamFormat, VideoCodec } from '../../media/codec.ts';
import { MPEG_90K, rescale, toSeconds } from '../../media/timebase.ts';
import type { FileTrackMessage } from '../messages.ts';
import { routedAccessUnit, videoTrackMessage } from './encoded-track.ts';
import { Decoder } from './engine/decoder.ts';
import type { FilePacket, FileStream } from './engine/demuxer.ts';
import { type EncodedData, Encoder } from './engine/encoder.ts';
import { FilterChain } from './engine/filter-chain.ts';
import type { FramePool } from './engine/frame-pool.ts';
import { type FrameFormat, frameFormat, sameFrameFormat, stampFrame } from './engine/frame-properties.ts';
import { EngineError, NO_TIMESTAMP, type RawFrame } from './engine/library.ts';
import { type FileTrack, type MadePacketSink, WITHOUT_PRESENTATION_TIMES } from './file-track.ts';

const ENCODER = 'libx264';
const PIXEL_FORMAT = 'yuv420p';
/** Distance between keyframes, 1/90000 s: segments of any length in whole seconds can be cut. */
const KEYFRAME_TICKS = 180_000;
/** Maximum keyframe interval in frames; keyframes are normally forced, so this is for still films. */
const MAX_GOP = 600;
/** Pixels of 4K: larger frames are made smaller. */
const MAX_PIXELS = 4096 * 2160;
const DEFAULT_FRAMERATE = 25;
/** A higher rate is a container's timebase, not a frame rate. */
const MAX_FRAMERATE = 240;
const MIN_FRAMERATE = 0.01;
/** Quality for x264: nearly indistinguishable from the source. */
const QUALITY = '20';
/** Limit of bits per pixel, for scenes with much detail; and the lowest limit of bits per second, for small frames. */
const MAX_BITS_PER_PIXEL = 0.2;
const MIN_CEILING = 1_000_000;
/** Frames that x264 looks ahead to spread its bits, at most half a second. */
const MAX_LOOKAHEAD = 20;
/** Pixels per second and core up to which an encode of this effort keeps up with the clock. */
const EFFORTS = [
  { pixels: 15_000_000, preset: 'fast' },
  { pixels: 30_000_000, preset: 'faster' },
  { pixels: 60_000_000, preset: 'veryfast' },
  { pixels: 90_000_000, preset: 'superfast' },
] as const;
const LEAST_EFFORT = 'ultrafast';
/** Limit of consecutive frames that cannot be converted; a damaged film has single ones. */
const MAX_FAILURES = 30;

/** Options of a video encode of a film. */
export interface EncodedVideoOptions {
  readonly stream: FileStream;
  readonly startSeconds: number;
  /** Name of the container in the library: some have no presentation times. */
  readonly container: string;
  readonly sink: MadePacketSink;
  readonly pool: FramePool;
  readonly cpus: number;
  /** Called for each frame: a packet may bring many, and each takes its time. */
  readonly progress: () => void;
}

/** Frames keep their times, and are scaled to the size that the file declares. */
export class EncodedVideoTrack implements FileTrack {
  readonly message: FileTrackMessage;
  readonly #id: number;
  readonly #options: EncodedVideoOptions;
  readonly #format: FrameFormat;
  readonly #framerate: number;
  readonly #start: number;
  readonly #decoder: Decoder;
  #encoder: Encoder;
  #chain: FilterChain | null = null;
  #chainFormat: FrameFormat | null = null;
  /** 1/90000 s. */
  readonly #duration: number;
  #lastDecoded = Number.NEGATIVE_INFINITY;
  #lastPts = Number.NEGATIVE_INFINITY;
  #nextKeyframe = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #closed = false;

  /** Throws EngineError when there is no decoder for it, or it has no size. */
  constructor(id: number, options: EncodedVideoOptions) {
    const { stream, startSeconds, container, pool, cpus } = options;
    this.#id = id;
    this.#options = options;
    const { framerate: announced } = stream;
    this.#framerate = announced >= MIN_FRAMERATE && announced <= MAX_FRAMERATE ? announced : DEFAULT_FRAMERATE;
    this.#duration = Math.round(MPEG_90K.den / this.#framerate);
    this.#format = formatOf(stream);
    // Without presentation times the decoder's delay is still in the times of the frames.
    const delay = WITHOUT_PRESENTATION_TIMES.includes(container) ? stream.delay / this.#framerate : 0;
    this.#start = Math.round((startSeconds + delay) * MPEG_90K.den);
    this.#decoder = new Decoder(
      { codec: stream.parameters, timebase: stream.timebase, config: null, threads: cpus, offThread: true, timeless: true },
      pool,
    );
    try {
      this.#encoder = this.#openEncoder();
    } catch (error) {
      this.#decoder.close();
      throw error;
    }
    const { width, height } = this.#format;
    const told = videoTrackMessage({
      ...{ codec: VideoCodec.H264, extraData: this.#encoder.extraData, width, height },
      ...{ framerate: this.#framerate, bitrate: 0 },
    });
    this.message = {
      ...{ id, type: 'video', codec: VideoCodec.H264, format: BitstreamFormat.LENGTH_PREFIXED, timebase: MPEG_90K },
      ...{ config: told.config, width, height, bitrateConf: 0, framerateConf: this.#framerate },
    };
  }

  async push(packet: FilePacket): Promise<void> {
    const frames: RawFrame[] = [];
    await this.#decoder.decodePacket(packet, (frame) => frames.push(frame));
    await this.#encodeAll(frames);
  }

  async finish(): Promise<void> {
    const frames: RawFrame[] = [];
    await this.#decoder.drain((frame) => frames.push(frame));
    await this.#encodeAll(frames);
    await this.#endChain();
    await this.#encoder.encode(null, this.#emit);
  }

  restart(): void {
    this.#decoder.flush();
    this.#chain?.close();
    this.#chain = null;
    this.#chainFormat = null;
    // The encoder cannot be reset.
    this.#encoder.close();
    this.#encoder = this.#openEncoder();
    this.#lastDecoded = Number.NEGATIVE_INFINITY;
    this.#lastPts = Number.NEGATIVE_INFINITY;
    this.#nextKeyframe = Number.NEGATIVE_INFINITY;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#decoder.close();
    this.#chain?.close();
    this.#encoder.close();
  }

  #openEncoder(): Encoder {
    const { cpus } = this.#options;
    const { width, height } = this.#format;
    const pixelRate = width * height * this.#framerate;
    const ceiling = Math.round(Math.max(MIN_CEILING, pixelRate * MAX_BITS_PER_PIXEL));
    const preset = EFFORTS.find(({ pixels }) => pixelRate <= pixels * cpus)?.preset ?? LEAST_EFFORT;
    return Encoder.forFrames({
      ...{ name: ENCODER, format: this.#format, pixelFormat: PIXEL_FORMAT, uploads: false, framerate: this.#framerate },
      // B-frames would keep the film from players of WebRTC.
      ...{ bitrate: 0, bFrames: 0, gop: MAX_GOP, bufferBits: 0, threads: cpus, offThread: true },
      options: {
        ...{ preset, crf: QUALITY, maxrate: String(ceiling), bufsize: String(ceiling), profile: 'high' },
        ...{ 'forced-idr': '1', sc_threshold: '0' },
        'rc-lookahead': String(Math.min(MAX_LOOKAHEAD, Math.max(1, Math.floor(this.#framerate / 2)))),
      },
    });
  }

  async #encodeAll(frames: readonly RawFrame[]): Promise<void> {
    for (const frame of frames) {
      try {
        await this.#fit(frame);
        this.#failures = 0;
      } catch (error) {
        this.#failures += 1;
        if (!(error instanceof EngineError) || this.#failures > MAX_FAILURES) throw error;
      } finally {
        this.#options.pool.give(frame);
      }
      this.#options.progress();
    }
  }

  /** Converts a frame to the format of the track and encodes it. */
  async #fit(frame: RawFrame): Promise<void> {
    const { stream, pool } = this.#options;
    const known = frame.pts === NO_TIMESTAMP ? null : rescale(Number(frame.pts), stream.timebase, MPEG_90K) - this.#start;
    const pts = known ?? this.#lastDecoded + this.#duration;
    if (!Number.isFinite(pts)) return;
    this.#lastDecoded = pts;
    stampFrame(frame, pts, false);
    const format = frameFormat(frame);
    if (this.#chain === null || this.#chainFormat === null || !sameFrameFormat(format, this.#chainFormat)) {
      await this.#endChain();
      this.#chain = FilterChain.forFilm(format, { ...this.#format, pixelFormat: PIXEL_FORMAT }, { pool, offThread: true, threads: 1 });
      this.#chainFormat = format;
    }
    const made: RawFrame[] = [];
    await this.#chain.run(frame, (filtered) => made.push(filtered));
    await this.#encode(made);
  }

  async #endChain(): Promise<void> {
    if (this.#chain === null) return;
    const made: RawFrame[] = [];
    const chain = this.#chain;
    this.#chain = null;
    try {
      await chain.drain((filtered) => made.push(filtered));
    } finally {
      chain.close();
    }
    await this.#encode(made);
  }

  async #encode(frames: readonly RawFrame[]): Promise<void> {
    for (const frame of frames) {
      const pts = Number(frame.pts);
      try {
        if (pts <= this.#lastPts) continue;
        this.#lastPts = pts;
        const keyframe = pts >= this.#nextKeyframe;
        if (keyframe) this.#nextKeyframe = (Math.floor(pts / KEYFRAME_TICKS) + 1) * KEYFRAME_TICKS;
        stampFrame(frame, pts, keyframe);
        await this.#encoder.encode(frame, this.#emit);
      } finally {
        this.#options.pool.give(frame);
      }
    }
  }

  readonly #emit = ({ data, pts, dts, keyframe }: EncodedData): void => {
    this.#options.sink({
      ...{ trackId: this.#id, pts, dts, keyframe, seconds: toSeconds(dts, MPEG_90K) },
      duration: this.#duration,
      data: routedAccessUnit(VideoCodec.H264, data),
    });
  };
}

/** An even size, as the encoder requires, within the limit. */
function formatOf({ width, height, sarNum, sarDen, parameters }: FileStream): FrameFormat {
  if (width < 2 || height < 2) throw new EngineError(`frames of ${width}×${height} pixels`);
  const scale = Math.min(1, Math.sqrt(MAX_PIXELS / (width * height)));
  const even = (pixels: number): number => Math.max(2, Math.floor((pixels * scale) / 2) * 2);
  const rgb = (parameters.colorSpace as number) === 0;
  return {
    ...{ width: even(width), height: even(height), pixelFormat: 0, sarNum, sarDen },
    // Frames of RGB become BT.709, and all of them get the range of video.
    ...{ colorSpace: rgb ? 1 : parameters.colorSpace, colorRange: 1 },
    ...{ colorPrimaries: parameters.colorPrimaries, colorTransfer: parameters.colorTrc },
  };
}
