/** One inbound frame track: decoded once, scaled once to each size, encoded for each encode. */

import { MPEG_90K, rescale, type Timebase } from '../../media/timebase.ts';
import type { BoundedQueue } from '../../util/bounded-queue.ts';
import { CodecModule, chooseDecoders, HARDWARE_DECODERS } from '../encoder-catalogue.ts';
import { configBytes, type SourceMessage, VIDEO_WINDOW } from '../messages.ts';
import { deviceOptions } from './device-options.ts';
import { Decoder } from './engine/decoder.ts';
import { type FrameFormat, frameFormat, rotationOf, sameFrameFormat, startsGroup } from './engine/frame-properties.ts';
import { EngineError, type RawFrame } from './engine/library.ts';
import { ErrorRun } from './error-run.ts';
import { type FrameEncode, FrameOutput } from './frame-output.ts';
import { FrameQueue } from './frame-queue.ts';
import { type FrameNode, FrameScaler } from './frame-scaler.ts';
import type { Pipeline, PipelineInput, PipelineTools } from './pipeline.ts';

/** Decoded frames that wait to be scaled. */
const MAX_DECODED_FRAMES = 4;
/** Frames above this many pixels are decoded on a thread of the pool; for smaller ones the handover costs more than the work. */
const OFF_THREAD_PIXELS = 640 * 360;
const DEFAULT_FRAMERATE = 30;
/** Consecutive frames that cannot be scaled before the encodes fail; a damaged stream has single ones. */
const MAX_FAILURES = 30;
/** A hardware decoder that has taken this many packets in a row without a frame only seemed to work. */
const MAX_FRUITLESS_PACKETS = 60;

type VideoSource = Extract<SourceMessage, { type: 'video' }>;

interface DecodedFrame {
  readonly frame: RawFrame;
  /** 1/90000 s. */
  readonly pts: number;
  readonly duration: number;
  readonly keyframe: boolean;
  readonly discontinuity: boolean;
  /** Frames per second of the source when it was decoded. */
  readonly framerate: number;
}

/**
 * Made and closed by its job; `close` resolves when no codec is running. Faults of decoders and encoders go to the sink, none is thrown.
 */
export class VideoPipeline implements Pipeline {
  readonly #sourceId: number;
  readonly #tools: PipelineTools;
  readonly #input: FrameQueue<PipelineInput>;
  readonly #decoded: FrameQueue<DecodedFrame>;
  readonly #outputs: readonly FrameOutput[];
  readonly #scaler: FrameScaler;
  readonly #running: Promise<unknown>;
  #decoder: Decoder | null = null;
  #timebase: Timebase = MPEG_90K;
  #framerate = 0;
  #discontinuity = false;
  #format: FrameFormat | null = null;
  #sourceRate = 0;
  #rotation = 0;
  readonly #errors: ErrorRun;
  #source: VideoSource | null = null;
  /** Names of hardware decoders that have made nothing. */
  readonly #fruitless = new Set<string>();
  /** Packets since the last frame. */
  #withoutFrame = 0;

  constructor(sourceId: number, encodes: readonly FrameEncode[], tools: PipelineTools) {
    this.#sourceId = sourceId;
    this.#tools = tools;
    const { clock } = tools;
    this.#errors = new ErrorRun(clock);
    this.#input = new FrameQueue({ role: '', type: 'Packet', threshold: VIDEO_WINDOW * 2, clock });
    this.#decoded = new FrameQueue({ role: 'filter_video', type: 'Frame', threshold: MAX_DECODED_FRAMES, clock });
    this.#outputs = encodes.map((encode) => new FrameOutput(encode, tools));
    this.#scaler = new FrameScaler(tools.pool);
    this.#running = Promise.all([this.#decodeLoop(), this.#filterLoop()]);
  }

  get queues(): readonly { readonly queue: BoundedQueue<unknown> }[] {
    return [this.#decoded, ...this.#outputs.map((output) => output.queue)] as unknown as { queue: BoundedQueue<unknown> }[];
  }

  push(input: PipelineInput): boolean {
    return this.#input.offer(input);
  }

  requestKeyframe(encodeId: number, pts: number): void {
    this.#outputs.find(({ encode }) => encode.id === encodeId)?.requestKeyframe(pts);
  }

  async close(): Promise<void> {
    this.#input.close();
    this.#decoded.close();
    await Promise.all([this.#running, ...this.#outputs.map((output) => output.close())]);
  }

  async #decodeLoop(): Promise<void> {
    for (;;) {
      const input = await this.#input.take();
      if (input === undefined || this.#decoded.closed) break;
      if ('source' in input) {
        await this.#open(input.source);
        continue;
      }
      const { packet } = input;
      this.#tools.sink.onTaken(this.#sourceId);
      if (packet.discontinuity) this.#discontinuity = true;
      if (this.#decoder === null) continue;
      if (this.#framerate <= 0) this.#framerate = packet.duration > 0 ? this.#timebase.den / this.#timebase.num / packet.duration : 0;
      const frames: RawFrame[] = [];
      await this.#decoder.decode(packet, (frame) => frames.push(frame));
      this.#withoutFrame = frames.length > 0 ? 0 : this.#withoutFrame + 1;
      if (this.#withoutFrame === MAX_FRUITLESS_PACKETS) this.#giveUpHardware(this.#decoder);
      await this.#pass(frames);
    }
    this.#closeDecoder();
    this.#decoded.close();
  }

  async #pass(frames: readonly RawFrame[]): Promise<void> {
    for (const frame of frames) {
      const decoded: DecodedFrame = {
        frame,
        pts: rescale(Number(frame.pts), this.#timebase, MPEG_90K),
        duration: rescale(Number(frame.duration), this.#timebase, MPEG_90K),
        keyframe: startsGroup(frame),
        discontinuity: this.#discontinuity,
        framerate: this.#framerate > 0 ? this.#framerate : DEFAULT_FRAMERATE,
      };
      this.#discontinuity = false;
      if (!(await this.#decoded.put(decoded))) this.#tools.pool.give(frame);
    }
  }

  /** Starts a decoder for the following packets; the previous one outputs its remaining frames. */
  async #open(source: SourceMessage): Promise<void> {
    if (this.#decoder !== null) {
      const frames: RawFrame[] = [];
      await this.#decoder.drain((frame) => frames.push(frame));
      await this.#pass(frames);
      this.#closeDecoder();
    }
    if (source.type !== 'video') return;
    this.#timebase = source.timebase;
    this.#framerate = source.framerate;
    this.#source = source;
    this.#start(source);
  }

  #start(source: VideoSource): void {
    this.#withoutFrame = 0;
    try {
      this.#decoder = this.#openDecoder(source);
      this.#tools.census.decoder(this.#decoder.name, 1);
    } catch (error) {
      for (const output of this.#outputs) output.fail(error, 'decoder', { module: CodecModule.DEFAULT });
    }
  }

  /** The first hardware decoder that opens, where hardware is on, else the library's own. Throws EngineError. */
  #openDecoder(source: VideoSource): Decoder {
    const { decoderThreads, hardwareDecoding, pool, sink, working } = this.#tools;
    const options = {
      codec: source.codec,
      timebase: source.timebase,
      config: configBytes(source.config),
      threads: decoderThreads,
      // An unknown size is treated as a large one.
      offThread: source.width * source.height === 0 || source.width * source.height > OFF_THREAD_PIXELS,
    };
    const { candidates, unavailable } = chooseDecoders(source.codec, hardwareDecoding, working);
    const reasons = unavailable.map((module) => `module '${module}' is not available`);
    for (const { name, device } of candidates) {
      try {
        if (this.#fruitless.has(name)) throw new EngineError(`${name} made no frame of ${MAX_FRUITLESS_PACKETS} packets`);
        const { module = CodecModule.DEFAULT } = HARDWARE_DECODERS.find((entry) => entry.name === name) ?? {};
        const { options: own, node } = deviceOptions(module, device);
        return new Decoder({ ...options, name, options: own, device: node }, pool);
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        reasons.push(error.message);
      }
    }
    const decoder = new Decoder(options, pool);
    if (reasons.length > 0) sink.notice('warn', `decoding of track ${this.#sourceId} falls back to ${decoder.name}: ${reasons.join('; ')}`);
    return decoder;
  }

  /** The next decoder takes over with the next keyframe. */
  #giveUpHardware({ name }: Decoder): void {
    if (this.#source === null || !HARDWARE_DECODERS.some((entry) => entry.name === name)) return;
    this.#fruitless.add(name);
    this.#closeDecoder();
    this.#start(this.#source);
  }

  #closeDecoder(): void {
    if (this.#decoder === null) return;
    this.#tools.census.decoder(this.#decoder.name, -1);
    this.#decoder.close();
    this.#decoder = null;
  }

  async #filterLoop(): Promise<void> {
    for (;;) {
      const decoded = await this.#decoded.take();
      if (decoded === undefined) break;
      if (!this.#decoded.closed) await this.#distribute(decoded);
      this.#tools.pool.give(decoded.frame);
    }
    this.#scaler.close();
  }

  async #distribute(decoded: DecodedFrame): Promise<void> {
    const { frame, pts, keyframe, discontinuity } = decoded;
    this.#follow(decoded);
    const wanted = new Set<FrameNode>();
    const chosen: { output: FrameOutput; times: readonly number[] }[] = [];
    for (const output of this.#outputs) {
      if (output.failed || output.node === null) continue;
      // Another encoder than planned may have opened.
      if (output.node.target.pixelFormat !== output.pixelFormat) output.node = this.#scaler.node(output.encode, output.pixelFormat);
      const times = output.select(pts, keyframe, discontinuity);
      if (times.length === 0) continue;
      chosen.push({ output, times });
      wanted.add(output.node);
    }
    try {
      await this.#scaler.scale(frame, wanted);
      for (const { output, times } of chosen) await output.put(times, decoded.duration);
      this.#errors.clear();
    } catch (error) {
      const isOver = this.#errors.add() >= MAX_FAILURES;
      const { errors } = this.#errors;
      if (isOver) for (const { output } of chosen) output.fail(error, 'filter', { errors });
    }
    this.#scaler.release();
  }

  /** Takes a new frame rate or format of the source's frames. */
  #follow({ frame, framerate }: DecodedFrame): void {
    if (framerate !== this.#sourceRate) {
      this.#sourceRate = framerate;
      for (const output of this.#outputs) output.setSourceRate(framerate);
    }
    const format = frameFormat(frame);
    if (this.#format !== null && sameFrameFormat(format, this.#format)) return;
    this.#format = format;
    this.#scaler.setFormat(format);
    for (const output of this.#outputs) output.node = this.#scaler.node(output.encode, output.pixelFormat);
    const rotation = rotationOf(frame);
    if (rotation !== this.#rotation) {
      this.#rotation = rotation;
      this.#tools.sink.notice('info', `track ${this.#sourceId} asks players to turn the frame by ${rotation}°; encodes do not turn it`);
    }
  }
}
