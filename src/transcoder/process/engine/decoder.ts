import * as C from 'node-av/constants';
import { avChannelLayoutDefault, Codec, CodecContext, CodecParameters, Option, Packet, Rational } from 'node-av/lib';
import type { AudioCodec, VideoCodec } from '../../../media/codec.ts';
import { Device } from './device.ts';
import type { FramePool } from './frame-pool.ts';
import { AGAIN, CODEC_IDS, EngineError, NO_TIMESTAMP, type RawFrame, throwIfFailed } from './library.ts';

/** Options of a decoder of one inbound track. */
export interface DecoderOptions {
  /** Ours, or the library's description of a stream in a file. */
  readonly codec: VideoCodec | AudioCodec | CodecParameters;
  /** The library's name of a decoder; absent takes the library's choice. */
  readonly name?: string;
  readonly timebase: { readonly num: number; readonly den: number };
  readonly config: Uint8Array | null;
  /** 0 lets the library choose. */
  readonly threads: number;
  /** Decodes on a thread of the pool: worth its hand-over for large frames only. */
  readonly offThread: boolean;
  readonly sampleRate?: number;
  readonly channels?: number;
  /** Also outputs frames without a time, which remain at the end of a file. */
  readonly timeless?: boolean;
  /** Private options of the decoder. */
  readonly options?: Readonly<Record<string, string>>;
  /** The device a decoder of QSV works on, e.g. `/dev/dri/renderD129`; absent or null: the library's choice. */
  readonly device?: string | null;
}

/** Parameter sets can be forged or damaged; a frame larger than this would take the memory of all. */
const MAX_PIXELS = String(8192 * 8192);
/** Up to this many threads decode slices, which hold no frame back; more decode frames, and each holds one back. */
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
  readonly #device: Device | null;
  readonly #packet = new Packet();
  readonly #pool: FramePool;
  readonly #offThread: boolean;
  readonly #timeless: boolean;
  #closed = false;

  /** Throws EngineError when there is no decoder or it refuses the configuration. */
  constructor(options: DecoderOptions, pool: FramePool) {
    const { name } = options;
    const described = options.codec instanceof CodecParameters ? options.codec : null;
    const id = options.codec instanceof CodecParameters ? options.codec.codecId : CODEC_IDS[options.codec];
    const codec = name === undefined ? Codec.findDecoder(id) : findDecoderByName(name);
    if (codec === null) throw new EngineError(`no decoder ${name ?? `for ${described === null ? options.codec : `codec ${id}`}`}`);
    this.name = codec.name ?? String(id);
    const { device = null } = options;
    this.#device = device === null ? null : new Device('qsv', device);
    this.#pool = pool;
    this.#offThread = options.offThread;
    this.#timeless = options.timeless ?? false;
    this.#packet.alloc();
    const context = this.#context;
    context.allocContext3(codec);
    if (described !== null) throwIfFailed(context.parametersToContext(described), `decoder ${this.name}`);
    if (options.config !== null) context.extraData = Buffer.from(options.config);
    context.pktTimebase = new Rational(options.timebase.num, options.timebase.den);
    context.threadCount = options.threads;
    context.threadType = options.threads > LOW_DELAY_THREADS ? C.FF_THREAD_FRAME : C.FF_THREAD_SLICE;
    if (options.sampleRate !== undefined) context.sampleRate = options.sampleRate;
    if (options.channels !== undefined && options.channels > 0) context.channelLayout = avChannelLayoutDefault(options.channels);
    const target = context.getNative() as unknown as Parameters<typeof Option.set>[0];
    throwIfFailed(Option.set(target, 'max_pixels', MAX_PIXELS), `decoder ${this.name}`);
    for (const [key, value] of Object.entries(options.options ?? {})) {
      const set = Option.set(target, key, value, C.AV_OPT_SEARCH_CHILDREN);
      if (set < 0) this.close();
      throwIfFailed(set, `decoder ${this.name}: option ${key}=${value}`);
    }
    if (this.#device !== null) context.hwDeviceCtx = this.#device.context;
    const opened = context.open2Sync(codec, null);
    if (opened < 0) this.close();
    throwIfFailed(opened, `decoder ${this.name}`);
  }

  /** Decodes one packet. Each frame handed to `sink` belongs to it; its `pts` is in the track's timebase. Bad data is counted. */
  async decode(packet: { data: Uint8Array; pts: number; dts: number; duration: number }, sink: (frame: RawFrame) => void): Promise<void> {
    if (packet.data.length === 0) return; // Would mean the end of the stream.
    const { data } = packet;
    this.#packet.data = Buffer.from(data.buffer, data.byteOffset, data.length);
    this.#packet.pts = BigInt(packet.pts);
    this.#packet.dts = BigInt(packet.dts);
    this.#packet.duration = BigInt(packet.duration);
    await this.decodePacket(this.#packet, sink);
    this.#packet.unref();
  }

  /** The same for a packet of the library, which the caller keeps. */
  async decodePacket(packet: Packet, sink: (frame: RawFrame) => void): Promise<void> {
    const sent = this.#offThread ? await this.#context.sendPacket(packet) : this.#context.sendPacketSync(packet);
    if (sent < 0) this.errors += 1;
    this.#receive(sink);
  }

  /** Resets the decoder before packets from another position. */
  flush(): void {
    this.#context.flushBuffers();
  }

  /** Outputs the remaining frames; the decoder takes no packets afterwards. */
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
    this.#device?.close();
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
      if (frame.pts === NO_TIMESTAMP && !this.#timeless) this.#pool.give(frame);
      else sink(frame);
    }
  }
}
