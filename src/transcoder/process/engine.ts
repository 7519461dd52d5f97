/**
 * The codec library, and the only file that knows it. It is loaded in transcoder processes only: a wrong call here ends the
 * process, not with an exception. The rules that keep it alive: one operation at a time per object, nothing is closed
 * while an operation is under way (`await` it first), views into frames and packets do not outlive the callback.
 */
import * as C from 'node-av/constants';
import {
  avChannelLayoutDefault,
  avChannelLayoutDescribe,
  avGetPixFmtFromName,
  avGetSampleFmtName,
  Codec,
  CodecContext,
  CodecParameters,
  FFmpegError,
  FilterGraph,
  Frame,
  getFFmpegInfo,
  HardwareDeviceContext,
  HardwareFramesContext,
  Log,
  Option,
  Packet,
  Rational,
} from 'node-av/lib';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';

/** A decoded picture or block of samples. Whoever has one gives it back to the pool. */
export type RawFrame = Frame;

/** The library refused something; the text is for the log. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
}

const AGAIN = -11;
const NO_TIMESTAMP = -(2n ** 63n);
const POOL_LIMIT = 64;

const CODEC_IDS: Readonly<Record<VideoCodec | AudioCodec, C.AVCodecID>> = {
  [VideoCodec.H264]: C.AV_CODEC_ID_H264,
  [VideoCodec.H265]: C.AV_CODEC_ID_HEVC,
  [VideoCodec.VP8]: C.AV_CODEC_ID_VP8,
  [VideoCodec.VP9]: C.AV_CODEC_ID_VP9,
  [VideoCodec.AV1]: C.AV_CODEC_ID_AV1,
  [VideoCodec.JPEG]: C.AV_CODEC_ID_MJPEG,
  [VideoCodec.PNG]: C.AV_CODEC_ID_PNG,
  [VideoCodec.WEBP]: C.AV_CODEC_ID_WEBP,
  [AudioCodec.AAC]: C.AV_CODEC_ID_AAC,
  [AudioCodec.OPUS]: C.AV_CODEC_ID_OPUS,
  [AudioCodec.MP3]: C.AV_CODEC_ID_MP3,
  [AudioCodec.PCMU]: C.AV_CODEC_ID_PCM_MULAW,
  [AudioCodec.PCMA]: C.AV_CODEC_ID_PCM_ALAW,
};

/** Silences the library's own log, which goes to stderr line by line for every bad bit of a stream. */
export function silenceLibrary(): void {
  Log.setLevel(C.AV_LOG_FATAL);
}

/** The version of FFmpeg that is loaded, as FFmpeg writes it. */
export function libraryVersion(): string {
  return getFFmpegInfo().version;
}

function check(code: number, what: string): void {
  if (code < 0) throw new EngineError(`${what}: ${FFmpegError.strerror(code)}`);
}

/** Reuses frame shells; their contents are reference counted by the library. */
export class FramePool {
  readonly #free: Frame[] = [];

  take(): RawFrame {
    const frame = this.#free.pop();
    if (frame !== undefined) return frame;
    const fresh = new Frame();
    fresh.alloc();
    return fresh;
  }

  /** A second handle on the same picture or samples, with properties of its own. */
  share(frame: RawFrame): RawFrame {
    const shared = this.take();
    check(shared.ref(frame), 'frame reference');
    return shared;
  }

  give(frame: RawFrame): void {
    frame.unref();
    if (this.#free.length < POOL_LIMIT) this.#free.push(frame);
    else frame.free();
  }
}

/** What a decoder of one inbound track must know. */
export interface DecoderOptions {
  readonly codec: VideoCodec | AudioCodec;
  /** The library's name of a decoder; absent takes the library's choice. */
  readonly name?: string;
  readonly timebase: { readonly num: number; readonly den: number };
  readonly config: Uint8Array | null;
  /** 0 lets the library choose. */
  readonly threads: number;
  /** Decodes on a thread of the pool: worth its hand-over for large pictures only. */
  readonly offThread: boolean;
  readonly sampleRate?: number;
  readonly channels?: number;
}

/** Parameter sets can be forged or damaged; a picture larger than this would take the memory of all. */
const MAX_PIXELS = String(8192 * 8192);
/** Frame threads hold a picture back each; slices do not, so up to this many threads they must do. */
const LOW_DELAY_THREADS = 2;

function findDecoderByName(name: string): Codec | null {
  return Codec.findDecoderByName(name as Parameters<typeof Codec.findDecoderByName>[0]);
}

/** Coded packets in, frames out in display order. */
export class Decoder {
  /** The library's name of the decoder. */
  readonly name: string;
  /** Packets that could not be decoded. */
  errors = 0;
  readonly #context = new CodecContext();
  readonly #packet = new Packet();
  readonly #pool: FramePool;
  readonly #offThread: boolean;
  #closed = false;

  /** Throws EngineError when there is no decoder or it refuses the configuration. */
  constructor(options: DecoderOptions, pool: FramePool) {
    const { name } = options;
    const codec = name === undefined ? Codec.findDecoder(CODEC_IDS[options.codec]) : findDecoderByName(name);
    if (codec === null) throw new EngineError(`no decoder ${name ?? `for ${options.codec}`}`);
    this.name = codec.name ?? options.codec;
    this.#pool = pool;
    this.#offThread = options.offThread;
    this.#packet.alloc();
    const context = this.#context;
    context.allocContext3(codec);
    if (options.config !== null) context.extraData = Buffer.from(options.config);
    context.pktTimebase = new Rational(options.timebase.num, options.timebase.den);
    context.threadCount = options.threads;
    context.threadType = options.threads > LOW_DELAY_THREADS ? C.FF_THREAD_FRAME : C.FF_THREAD_SLICE;
    if (options.sampleRate !== undefined) context.sampleRate = options.sampleRate;
    if (options.channels !== undefined && options.channels > 0) context.channelLayout = avChannelLayoutDefault(options.channels);
    const target = context.getNative() as unknown as Parameters<typeof Option.set>[0];
    check(Option.set(target, 'max_pixels', MAX_PIXELS), `decoder ${this.name}`);
    const opened = context.open2Sync(codec, null);
    if (opened < 0) this.close();
    check(opened, `decoder ${this.name}`);
  }

  /** Decodes one packet. Each frame handed to `sink` belongs to it; its `pts` is in the track's timebase. Bad data is counted. */
  async decode(packet: { data: Uint8Array; pts: number; dts: number; duration: number }, sink: (frame: RawFrame) => void): Promise<void> {
    if (packet.data.length === 0) return; // Would mean the end of the stream.
    const { data } = packet;
    this.#packet.data = Buffer.from(data.buffer, data.byteOffset, data.length);
    this.#packet.pts = BigInt(packet.pts);
    this.#packet.dts = BigInt(packet.dts);
    this.#packet.duration = BigInt(packet.duration);
    const sent = this.#offThread ? await this.#context.sendPacket(this.#packet) : this.#context.sendPacketSync(this.#packet);
    this.#packet.unref();
    if (sent < 0) this.errors += 1;
    this.#receive(sink);
  }

  /** Hands out what the decoder still holds; it takes no packets afterwards. */
  async drain(sink: (frame: RawFrame) => void): Promise<void> {
    await this.#context.sendPacket(null);
    this.#receive(sink);
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#packet.free();
    this.#context.freeContext();
  }

  #receive(sink: (frame: RawFrame) => void): void {
    for (;;) {
      const frame = this.#pool.take();
      const code = this.#context.receiveFrameSync(frame);
      if (code < 0) {
        this.#pool.give(frame);
        if (code !== AGAIN && code !== C.AVERROR_EOF) this.errors += 1;
        return;
      }
      const best = frame.bestEffortTimestamp;
      if (best !== NO_TIMESTAMP) frame.pts = best;
      if (frame.pts === NO_TIMESTAMP) this.#pool.give(frame);
      else sink(frame);
    }
  }
}

/** Properties of a picture that decide how it is converted and encoded. */
export interface PictureFormat {
  readonly width: number;
  readonly height: number;
  readonly pixelFormat: number;
  readonly sarNum: number;
  readonly sarDen: number;
  readonly colorSpace: number;
  readonly colorRange: number;
  readonly colorPrimaries: number;
  readonly colorTransfer: number;
}

/** What a decoded frame tells of itself; an unknown aspect ratio is 1:1. */
export function pictureFormat(frame: RawFrame): PictureFormat {
  const { num, den } = frame.sampleAspectRatio;
  return {
    width: frame.width,
    height: frame.height,
    pixelFormat: frame.format,
    sarNum: num > 0 && den > 0 ? num : 1,
    sarDen: num > 0 && den > 0 ? den : 1,
    colorSpace: frame.colorSpace,
    colorRange: frame.colorRange,
    colorPrimaries: frame.colorPrimaries,
    colorTransfer: frame.colorTrc,
  };
}

/** Whether a filter chain or an encoder that was made for one takes the other. */
export function samePictureFormat(a: PictureFormat, b: PictureFormat): boolean {
  return (Object.keys(a) as (keyof PictureFormat)[]).every((key) => a[key] === b[key]);
}

/** Whether a picture has the pixel format that the library calls `name`. */
export function hasPixelFormat(frame: RawFrame, name: string): boolean {
  return frame.format === avGetPixFmtFromName(name as Parameters<typeof avGetPixFmtFromName>[0]);
}

/** Degrees clockwise that the source asks players to turn the picture by; 0 when it asks nothing. */
export function rotationOf(frame: RawFrame): number {
  const matrix = frame.getSideData(C.AV_FRAME_DATA_DISPLAYMATRIX);
  if (matrix === null || matrix.length < 36) return 0;
  // A 3×3 matrix in 16.16 fixed point; its first column holds cosine and sine of a counter-clockwise turn.
  const degrees = Math.round((Math.atan2(matrix.readInt32LE(4), matrix.readInt32LE(0)) * 180) / Math.PI);
  return (degrees + 360) % 360;
}

/** Properties of a block of samples. */
export interface SampleFormat {
  readonly sampleRate: number;
  readonly channels: number;
  readonly sampleFormat: number;
  /** As the library names it: `stereo`, `5.1(side)`. */
  readonly layout: string;
}

/** What decoded audio tells of itself; a layout without names is the default one of its number of channels. */
export function sampleFormat(frame: RawFrame): SampleFormat {
  const layout = frame.channelLayout;
  const known = layout.mask !== 0n ? layout : avChannelLayoutDefault(layout.nbChannels);
  return {
    sampleRate: frame.sampleRate,
    channels: layout.nbChannels,
    sampleFormat: frame.format,
    layout: avChannelLayoutDescribe(known) ?? 'stereo',
  };
}

/** A chain of filters with one way in and one way out. */
export class FilterChain {
  readonly #graph = new FilterGraph();
  readonly #source;
  readonly #sink;
  readonly #pool: FramePool;
  readonly #offThread: boolean;
  #closed = false;

  /** Pictures in `from` become `width`×`height` in the pixel format of this name, with pixels of the given aspect. */
  static forPictures(
    from: PictureFormat,
    to: { width: number; height: number; pixelFormat: string; sarNum: number; sarDen: number },
    options: { pool: FramePool; offThread: boolean; threads: number },
  ): FilterChain {
    const input = [
      `video_size=${from.width}x${from.height}`,
      `pix_fmt=${from.pixelFormat}`,
      'time_base=1/90000',
      `pixel_aspect=${from.sarNum}/${from.sarDen}`,
      `colorspace=${from.colorSpace}`,
      `range=${from.colorRange}`,
    ].join(':');
    const range = to.pixelFormat.startsWith('yuvj') ? ':out_range=pc' : '';
    const steps = `scale=${to.width}:${to.height}:flags=bicubic${range},format=${to.pixelFormat},setsar=${to.sarNum}/${to.sarDen}`;
    return new FilterChain(`buffer@in=${input},${steps},buffersink@out`, options);
  }

  /**
   * Samples in `from` become blocks of `frameSize` in the format of this name. Holes in the timestamps become silence, overlaps are
   * cut, and a slow drift is followed by stretching, so that what comes out is exactly as long as what came in.
   */
  static forSamples(
    from: SampleFormat,
    to: { sampleRate: number; channels: number; sampleFormat: string; frameSize: number },
    pool: FramePool,
  ): FilterChain {
    const input = [
      `sample_rate=${from.sampleRate}`,
      `sample_fmt=${avGetSampleFmtName(from.sampleFormat as C.AVSampleFormat) ?? 'fltp'}`,
      `channel_layout=${from.layout}`,
      `time_base=1/${from.sampleRate}`,
    ].join(':');
    const layout = avChannelLayoutDescribe(avChannelLayoutDefault(to.channels)) ?? 'stereo';
    const steps = [
      'aresample=min_comp=0.001:min_hard_comp=0.01:comp_duration=1:max_soft_comp=0.02',
      `aformat=sample_rates=${to.sampleRate}:sample_fmts=${to.sampleFormat}:channel_layouts=${layout}`,
      `asetnsamples=n=${to.frameSize}:p=0`,
    ].join(',');
    return new FilterChain(`abuffer@in=${input},${steps},abuffersink@out`, { pool, offThread: false, threads: 1 });
  }

  private constructor(text: string, options: { pool: FramePool; offThread: boolean; threads: number }) {
    this.#pool = options.pool;
    this.#offThread = options.offThread;
    const graph = this.#graph;
    graph.alloc();
    graph.nbThreads = options.threads;
    try {
      check(graph.parsePtr(text, null, null), `filters ${text}`);
      check(graph.configSync(), `filters ${text}`);
      const source = graph.getFilter(text.startsWith('a') ? 'abuffer@in' : 'buffer@in');
      const sink = graph.getFilter(text.startsWith('a') ? 'abuffersink@out' : 'buffersink@out');
      if (source === null || sink === null) throw new EngineError(`filters ${text}: no ends`);
      this.#source = source;
      this.#sink = sink;
    } catch (error) {
      graph.free();
      throw error;
    }
  }

  /** `frame` stays the caller's; each frame handed to `sink` belongs to it. Throws EngineError. */
  async run(frame: RawFrame, sink: (frame: RawFrame) => void): Promise<void> {
    // Only queues the frame; the work is done when the other end is asked.
    check(this.#source.buffersrcAddFrameSync(frame, C.AV_BUFFERSRC_FLAG_KEEP_REF), 'filter input');
    for (;;) {
      const out = this.#pool.take();
      const code = this.#offThread ? await this.#sink.buffersinkGetFrame(out) : this.#sink.buffersinkGetFrameSync(out);
      if (code < 0) {
        this.#pool.give(out);
        if (code === AGAIN || code === C.AVERROR_EOF) return;
        check(code, 'filter output');
      }
      sink(out);
      // A scaler gives one picture for one; asking again would only be told so.
      if (this.#offThread) return;
    }
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#graph.free();
  }
}

/** How an encoder is opened. */
interface EncoderOptions {
  /** The library's name. */
  readonly name: string;
  /** Bits per second; 0 leaves it to the encoder. */
  readonly bitrate: number;
  readonly threads: number;
  /** Options of this encoder by their names in the library. */
  readonly options: Readonly<Record<string, string>>;
}

/** How frames are encoded. */
export interface PictureEncoderOptions extends EncoderOptions {
  readonly format: PictureFormat;
  /** The library's name of the pixel format. */
  readonly pixelFormat: string;
  /** Frames per second, for rate control. */
  readonly framerate: number;
  readonly bFrames: number;
  /** Frames after which the encoder makes a keyframe by itself. */
  readonly gop: number;
  /** Bits that may pile up; 0 leaves rate control to the encoder. */
  readonly bufferBits: number;
  readonly offThread: boolean;
  /** The encoder takes pictures from the memory of a VA-API device only: they are brought there first. */
  readonly uploads: boolean;
}

/** How audio is encoded. */
export interface SampleEncoderOptions extends EncoderOptions {
  readonly sampleRate: number;
  readonly channels: number;
}

/** What an encoder made. `data` is a view that is gone after the callback. */
export interface EncodedData {
  readonly data: Uint8Array;
  readonly pts: number;
  readonly dts: number;
  readonly duration: number;
  readonly keyframe: boolean;
}

/** Pictures a VA-API encoder may hold at once. */
const SURFACES = 20;

/** Brings pictures into the memory of a VA-API device. */
class Surfaces {
  readonly frames = new HardwareFramesContext();
  readonly #device = new HardwareDeviceContext();
  readonly #surface = new Frame();

  /** Throws EngineError when there is no device. */
  constructor({ format, pixelFormat }: Pick<PictureEncoderOptions, 'format' | 'pixelFormat'>) {
    this.#surface.alloc();
    try {
      check(this.#device.create(C.AV_HWDEVICE_TYPE_VAAPI, null, null), 'VA-API device');
      this.frames.alloc(this.#device);
      this.frames.format = C.AV_PIX_FMT_VAAPI;
      this.frames.swFormat = avGetPixFmtFromName(pixelFormat);
      this.frames.width = format.width;
      this.frames.height = format.height;
      this.frames.initialPoolSize = SURFACES;
      check(this.frames.init(), 'VA-API surfaces');
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** The picture as a surface, valid until the next one. */
  upload(frame: RawFrame): RawFrame {
    const surface = this.#surface;
    surface.unref();
    check(this.frames.getBuffer(surface, 0), 'VA-API surface');
    check(this.frames.transferDataSync(surface, frame, 0), 'VA-API upload');
    check(surface.copyProps(frame), 'VA-API upload');
    return surface;
  }

  close(): void {
    this.#surface.free();
    this.frames.free();
    this.#device.free();
  }
}

/** Frames in, coded packets out. */
export class Encoder {
  readonly name: string;
  /** Parameter sets or decoder configuration as the encoder gives them; null when it has none. */
  readonly extraData: Uint8Array | null;
  /** Samples that every frame must have; 0 takes any number. */
  readonly frameSize: number;
  /** Samples of silence the encoder puts before the first. */
  readonly padding: number;
  readonly #context: CodecContext;
  readonly #packet = new Packet();
  readonly #offThread: boolean;
  readonly #surfaces: Surfaces | null;
  #closed = false;

  /** Throws EngineError when the encoder does not exist or refuses the parameters. */
  static forPictures(options: PictureEncoderOptions): Encoder {
    const surfaces = options.uploads ? new Surfaces(options) : null;
    return new Encoder(options, options.offThread, surfaces, (context) => {
      const { format } = options;
      context.width = format.width;
      context.height = format.height;
      context.pixelFormat = surfaces === null ? avGetPixFmtFromName(options.pixelFormat) : C.AV_PIX_FMT_VAAPI;
      if (surfaces !== null) context.hwFramesCtx = surfaces.frames;
      context.sampleAspectRatio = new Rational(format.sarNum, format.sarDen);
      context.colorSpace = format.colorSpace as C.AVColorSpace;
      context.colorRange = (options.pixelFormat.startsWith('yuvj') ? C.AVCOL_RANGE_JPEG : format.colorRange) as C.AVColorRange;
      context.colorPrimaries = format.colorPrimaries as C.AVColorPrimaries;
      context.colorTrc = format.colorTransfer as C.AVColorTransferCharacteristic;
      context.timeBase = new Rational(1, 90_000);
      context.framerate = new Rational(Math.round(options.framerate * 1000), 1000);
      context.gopSize = options.gop;
      context.maxBFrames = options.bFrames;
      if (options.bufferBits > 0) {
        context.rcMaxRate = BigInt(options.bitrate);
        context.rcBufferSize = options.bufferBits;
      }
    });
  }

  static forSamples(options: SampleEncoderOptions): Encoder {
    return new Encoder(options, false, null, (context, codec) => {
      const [format] = codec.sampleFormats ?? [];
      context.sampleRate = options.sampleRate;
      context.sampleFormat = format ?? C.AV_SAMPLE_FMT_FLTP;
      context.channelLayout = avChannelLayoutDefault(options.channels);
      context.timeBase = new Rational(1, options.sampleRate);
    });
  }

  private constructor(
    options: EncoderOptions,
    offThread: boolean,
    surfaces: Surfaces | null,
    configure: (context: CodecContext, codec: Codec) => void,
  ) {
    const codec = Codec.findEncoderByName(options.name as Parameters<typeof Codec.findEncoderByName>[0]);
    if (codec === null) {
      surfaces?.close();
      throw new EngineError(`no encoder '${options.name}'`);
    }
    this.name = options.name;
    this.#offThread = offThread;
    this.#surfaces = surfaces;
    const context = new CodecContext();
    this.#context = context;
    context.allocContext3(codec);
    try {
      configure(context, codec);
      if (options.bitrate > 0) context.bitRate = BigInt(Math.round(options.bitrate));
      context.threadCount = options.threads;
      context.setFlags(C.AV_CODEC_FLAG_GLOBAL_HEADER);
      // Not a Dictionary given to open: the library frees it there and again when it is collected.
      for (const [key, value] of Object.entries(options.options)) {
        const target = context.getNative() as unknown as Parameters<typeof Option.set>[0];
        check(Option.set(target, key, value, C.AV_OPT_SEARCH_CHILDREN), `encoder ${options.name}: option ${key}=${value}`);
      }
      check(context.open2Sync(codec, null), `encoder ${options.name}`);
      const parameters = new CodecParameters();
      parameters.alloc();
      check(parameters.fromContext(context), `encoder ${options.name}`);
      this.padding = parameters.initialPadding;
      parameters.free();
    } catch (error) {
      context.freeContext();
      surfaces?.close();
      throw error;
    }
    this.#packet.alloc();
    this.frameSize = context.frameSize;
    const { extraData } = context;
    this.extraData = extraData === null || extraData.length === 0 ? null : new Uint8Array(extraData);
  }

  /** `frame` stays the caller's; its `pts` is in 1/90000 s or samples. Null drains the encoder, which then takes no more. Throws EngineError. */
  async encode(frame: RawFrame | null, sink: (packet: EncodedData) => void): Promise<void> {
    const input = frame === null || this.#surfaces === null ? frame : this.#surfaces.upload(frame);
    const sent = this.#offThread ? await this.#context.sendFrame(input) : this.#context.sendFrameSync(input);
    if (sent !== C.AVERROR_EOF) check(sent, `encoder ${this.name}`);
    const packet = this.#packet;
    for (;;) {
      const code = this.#context.receivePacketSync(packet);
      if (code < 0) {
        if (code !== AGAIN && code !== C.AVERROR_EOF) check(code, `encoder ${this.name}`);
        return;
      }
      const { data } = packet;
      if (data !== null) {
        sink({
          data,
          pts: Number(packet.pts),
          dts: Number(packet.dts),
          duration: Number(packet.duration),
          keyframe: packet.isKeyframe,
        });
      }
      packet.unref();
    }
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#packet.free();
    this.#context.freeContext();
    this.#surfaces?.close();
  }
}

/** Gives a frame its place in time; for pictures also whether it must become a keyframe. */
export function stampFrame(frame: RawFrame, pts: number, keyframe: boolean): void {
  frame.pts = BigInt(pts);
  frame.pictType = keyframe ? C.AV_PICTURE_TYPE_I : C.AV_PICTURE_TYPE_NONE;
}

/** The sample format an encoder wants, by the library's name. */
export function sampleFormatOf(encoder: string): string {
  const codec = Codec.findEncoderByName(encoder as Parameters<typeof Codec.findEncoderByName>[0]);
  const [format] = codec?.sampleFormats ?? [];
  return avGetSampleFmtName(format ?? C.AV_SAMPLE_FMT_FLTP) ?? 'fltp';
}

/** Sample rates an encoder takes; null takes all. */
export function sampleRatesOf(encoder: string): readonly number[] | null {
  const codec = Codec.findEncoderByName(encoder as Parameters<typeof Codec.findEncoderByName>[0]);
  return codec?.supportedSamplerates ?? null;
}

const PROBE: PictureFormat = {
  width: 640,
  height: 360,
  pixelFormat: C.AV_PIX_FMT_YUV420P,
  sarNum: 1,
  sarDen: 1,
  colorSpace: C.AVCOL_SPC_UNSPECIFIED,
  colorRange: C.AVCOL_RANGE_UNSPECIFIED,
  colorPrimaries: C.AVCOL_PRI_UNSPECIFIED,
  colorTransfer: C.AVCOL_TRC_UNSPECIFIED,
};

/** Whether the library has this encoder; one for hardware counts only when it opens on this machine. */
export function encoderWorks(name: string, hardware: { readonly pixelFormat: string; readonly uploads: boolean } | null): boolean {
  if (Codec.findEncoderByName(name as Parameters<typeof Codec.findEncoderByName>[0]) === null) return false;
  if (hardware === null) return true;
  try {
    const encoder = Encoder.forPictures({
      name,
      format: PROBE,
      pixelFormat: hardware.pixelFormat,
      framerate: 30,
      bitrate: 1_000_000,
      bufferBits: 0,
      bFrames: 0,
      gop: 30,
      threads: 1,
      options: {},
      offThread: false,
      uploads: hardware.uploads,
    });
    encoder.close();
    return true;
  } catch {
    return false;
  }
}

/** The name of the library's decoder for a codec; null when it has none. */
export function decoderName(codec: VideoCodec | AudioCodec): string | null {
  return Codec.findDecoder(CODEC_IDS[codec])?.name ?? null;
}

const DEVICES = { cuda: C.AV_HWDEVICE_TYPE_CUDA, qsv: C.AV_HWDEVICE_TYPE_QSV } as const;

/** Whether this machine has such a device. */
export function deviceWorks(device: keyof typeof DEVICES): boolean {
  const context = new HardwareDeviceContext();
  const created = context.create(DEVICES[device], null, null);
  context.free();
  return created >= 0;
}

/** Whether the library has this decoder for hardware and it opens; some open without their device, which must be asked for too. */
export function decoderWorks(name: string, codec: VideoCodec): boolean {
  try {
    const options = { codec, name, timebase: { num: 1, den: 90_000 }, config: null, threads: 1, offThread: false };
    new Decoder(options, new FramePool()).close();
    return true;
  } catch {
    return false;
  }
}

/** The picture was decoded from a keyframe. */
export function startsGroup(frame: RawFrame): boolean {
  return frame.hasFlags(C.AV_FRAME_FLAG_KEY);
}
