import * as C from 'node-av/constants';
import {
  avChannelLayoutDefault,
  avGetPixFmtFromName,
  avGetSampleFmtName,
  Codec,
  CodecContext,
  CodecParameters,
  Option,
  Packet,
  Rational,
} from 'node-av/lib';
import { Device } from './device.ts';
import type { FrameFormat } from './frame-properties.ts';
import { AGAIN, EngineError, type RawFrame, throwIfFailed } from './library.ts';
import { Surfaces } from './surfaces.ts';

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
export interface FrameEncoderOptions extends EncoderOptions {
  readonly format: FrameFormat;
  /** The library's name of the pixel format. */
  readonly pixelFormat: string;
  /** Frames per second, for rate control. */
  readonly framerate: number;
  readonly bFrames: number;
  /** Maximum distance between keyframes, in frames. */
  readonly gop: number;
  /** Bits that may pile up; 0 leaves rate control to the encoder. */
  readonly bufferBits: number;
  readonly offThread: boolean;
  /** The encoder takes frames from the memory of a VA-API device only: they are brought there first. */
  readonly uploads: boolean;
  /** The device to work on, e.g. `/dev/dri/renderD129`, for encoders that open one; absent or null: the library's choice. */
  readonly device?: string | null;
}

/** How audio is encoded. */
export interface SampleEncoderOptions extends EncoderOptions {
  readonly sampleRate: number;
  readonly channels: number;
}

/** Output of an encoder. `data` is a view that is valid during the callback only. */
export interface EncodedData {
  readonly data: Uint8Array;
  readonly pts: number;
  readonly dts: number;
  readonly duration: number;
  readonly keyframe: boolean;
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
  readonly #device: Device | null;
  #closed = false;

  /** Throws EngineError when the encoder does not exist or refuses the parameters. */
  static forFrames(options: FrameEncoderOptions): Encoder {
    const { device = null } = options;
    const surfaces = options.uploads ? new Surfaces(options.format, options.pixelFormat, device) : null;
    const own = device === null || options.uploads ? null : new Device('qsv', device);
    return new Encoder(options, { offThread: options.offThread, surfaces, device: own }, (context) => {
      const { format } = options;
      context.width = format.width;
      context.height = format.height;
      context.pixelFormat = surfaces === null ? avGetPixFmtFromName(options.pixelFormat) : C.AV_PIX_FMT_VAAPI;
      if (surfaces !== null) context.hwFramesCtx = surfaces.frames;
      if (own !== null) context.hwDeviceCtx = own.context;
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
    return new Encoder(options, { offThread: false, surfaces: null, device: null }, (context, codec) => {
      const [format] = codec.sampleFormats ?? [];
      context.sampleRate = options.sampleRate;
      context.sampleFormat = format ?? C.AV_SAMPLE_FMT_FLTP;
      context.channelLayout = avChannelLayoutDefault(options.channels);
      context.timeBase = new Rational(1, options.sampleRate);
    });
  }

  private constructor(
    options: EncoderOptions,
    { offThread, surfaces, device }: { readonly offThread: boolean; readonly surfaces: Surfaces | null; readonly device: Device | null },
    configure: (context: CodecContext, codec: Codec) => void,
  ) {
    const codec = Codec.findEncoderByName(options.name as Parameters<typeof Codec.findEncoderByName>[0]);
    if (codec === null) {
      surfaces?.close();
      device?.close();
      throw new EngineError(`no encoder '${options.name}'`);
    }
    this.name = options.name;
    this.#offThread = offThread;
    this.#surfaces = surfaces;
    this.#device = device;
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
        throwIfFailed(Option.set(target, key, value, C.AV_OPT_SEARCH_CHILDREN), `encoder ${options.name}: option ${key}=${value}`);
      }
      throwIfFailed(context.open2Sync(codec, null), `encoder ${options.name}`);
      const parameters = new CodecParameters();
      parameters.alloc();
      throwIfFailed(parameters.fromContext(context), `encoder ${options.name}`);
      this.padding = parameters.initialPadding;
      parameters.free();
    } catch (error) {
      context.freeContext();
      surfaces?.close();
      device?.close();
      throw error;
    }
    this.#packet.alloc();
    this.frameSize = context.frameSize;
    const { extraData } = context;
    this.extraData = extraData === null || extraData.length === 0 ? null : new Uint8Array(extraData);
  }

  /**
   * The caller keeps `frame`; its `pts` is in 1/90000 s or samples. Null drains the encoder, which then accepts no more frames. Throws
   * EngineError.
   */
  async encode(frame: RawFrame | null, sink: (packet: EncodedData) => void): Promise<void> {
    const input = frame === null || this.#surfaces === null ? frame : this.#surfaces.upload(frame);
    const sent = this.#offThread ? await this.#context.sendFrame(input) : this.#context.sendFrameSync(input);
    if (sent !== C.AVERROR_EOF) throwIfFailed(sent, `encoder ${this.name}`);
    const packet = this.#packet;
    for (;;) {
      const code = this.#context.receivePacketSync(packet);
      if (code < 0) {
        if (code !== AGAIN && code !== C.AVERROR_EOF) throwIfFailed(code, `encoder ${this.name}`);
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
    this.#device?.close();
  }
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
