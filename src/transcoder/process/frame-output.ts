import type { OverlayRequest } from '../../core/transcoding.ts';
import { messageOf } from '../../util/message-of.ts';
import type { CodecModule } from '../encoder-catalogue.ts';
import type { EncodePart, TrackMessage } from '../messages.ts';
import { closeEncoder, type OpenEncoder } from './encoder-opening.ts';
import type { EncodedData } from './engine/encoder.ts';
import { FilterChain } from './engine/filter-chain.ts';
import { type FrameFormat, frameFormat, hasPixelFormat, sameFrameFormat, stampFrame } from './engine/frame-properties.ts';
import { EngineError, type RawFrame } from './engine/library.ts';
import type { OverlayChain } from './engine/overlay-chain.ts';
import { ErrorRun, faultFacts } from './error-run.ts';
import { FrameQueue } from './frame-queue.ts';
import type { FrameNode } from './frame-scaler.ts';
import { FrameSelector } from './frame-selector.ts';
import type { KeyframePlan } from './keyframe-schedule.ts';
import { ForcedKeyframes, KeyframeSchedule } from './keyframe-schedule.ts';
import { openOverlays } from './overlay-stage.ts';
import type { PipelineTools } from './pipeline.ts';

/** Scaled frames that wait for an encoder. */
const MAX_SCALED_FRAMES = 6;
/** Consecutive failures after which an encoder is given up. */
const MAX_FAILURES = 3;

interface Waiting {
  readonly frame: RawFrame;
  readonly pts: number;
  readonly duration: number;
  readonly keyframe: boolean;
}

/** Differences between the kinds of frame encodes. */
export interface FrameEncode {
  readonly id: number;
  readonly width: number;
  readonly height: number;
  /** Frames per second; 0 follows the source. */
  readonly framerate: number;
  readonly skipFrames: number;
  /** Keeps the frame rate by repeating frames. */
  readonly constant: boolean;
  /** Pixel format of the encoder that will be tried first. */
  readonly pixelFormat: string;
  /** Last part of the queue's URN. */
  readonly role: string;
  /** Images over the frames, from below to above. */
  readonly overlays: readonly OverlayRequest[];
  /** Null for images, which all are keyframes. */
  keyframePlan(framerate: number): KeyframePlan | null;
  /** Throws EngineError. */
  open(format: FrameFormat, framerate: number): { readonly opened: OpenEncoder; readonly track: TrackMessage };
  /** The bytes in the layout that the server expects; a copy. */
  layout(data: Uint8Array): Uint8Array;
}

/** One encode of a frame track: picks its frames, queues them, encodes them at its own pace. */
export class FrameOutput {
  readonly encode: FrameEncode;
  readonly queue: FrameQueue<Waiting>;
  /** The scaled size from which it takes frames; null until the form of the source is known. */
  node: FrameNode | null = null;
  readonly #tools: PipelineTools;
  readonly #selector: FrameSelector;
  readonly #running: Promise<void>;
  #schedule: KeyframeSchedule | null = null;
  #sourceRate = 0;
  #keyframeOwed = false;
  /** The source had a keyframe since the last frame of a constant rate. */
  #sourceKeyframe = false;
  #keyframeWanted = false;
  readonly #forced = new ForcedKeyframes();
  /** The frame before, when it may have to be repeated. */
  #last: RawFrame | null = null;
  #opened: OpenEncoder | null = null;
  #format: FrameFormat | null = null;
  /** Null where nothing lies over the frames. */
  #overlays: OverlayChain | null = null;
  #pixelFormat: string;
  #duration = 0;
  #lastDts = Number.NEGATIVE_INFINITY;
  readonly #errors: ErrorRun;
  /** Module of the encoder that opened last. */
  #module: CodecModule | null = null;
  #failed = false;

  constructor(encode: FrameEncode, tools: PipelineTools) {
    this.encode = encode;
    this.#pixelFormat = encode.pixelFormat;
    this.#tools = tools;
    this.#errors = new ErrorRun(tools.clock);
    this.#selector = new FrameSelector(encode);
    this.queue = new FrameQueue({ role: encode.role, type: 'Frame', threshold: MAX_SCALED_FRAMES, clock: tools.clock });
    this.#running = this.#encodeLoop();
  }

  get failed(): boolean {
    return this.#failed;
  }

  /** The wanted pixel format of frames: that of the last opened encoder, at first that of the first candidate. */
  get pixelFormat(): string {
    return this.#pixelFormat;
  }

  /** Frames per second of the source, when known or changed. */
  setSourceRate(framerate: number): void {
    this.#sourceRate = framerate;
    const plan = this.encode.keyframePlan(this.#framerate);
    this.#schedule = plan === null ? null : new KeyframeSchedule(plan);
  }

  /** The first frame from `pts` (1/90000 s) on becomes a keyframe; with 0 the next one. */
  requestKeyframe(pts: number): void {
    if (pts > 0) this.#forced.add(pts);
    else this.#keyframeWanted = true;
  }

  /** The times at which the frame at `pts` (1/90000 s) is shown, as `FrameSelector.select`; empty when it is not. */
  select(pts: number, sourceKeyframe: boolean, discontinuity: boolean): readonly number[] {
    // With a constant rate the schedule is asked about the output times; otherwise about every frame of the source.
    if (this.#selector.repeats) this.#sourceKeyframe ||= sourceKeyframe;
    else if (this.#isDue(pts, sourceKeyframe)) this.#keyframeOwed = true;
    return this.#selector.select(pts, this.#keyframeOwed, discontinuity);
  }

  /** Queues the node's frame at `times`: all times but the last repeat the previous frame. Waits for room. */
  async put(times: readonly number[], sourceDuration: number): Promise<void> {
    const { node } = this;
    const scaled = node?.current ?? null;
    if (scaled === null) return;
    const { pool } = this.#tools;
    for (let index = 0; index < times.length; index += 1) {
      const pts = times[index] ?? 0;
      const repeated = index < times.length - 1;
      const frame = pool.share(repeated ? (this.#last ?? scaled) : scaled);
      const waiting = { frame, pts, duration: this.#durationOf(sourceDuration), keyframe: this.#keyframeAt(pts, repeated) };
      if (!(await this.queue.put(waiting))) pool.give(frame);
    }
    if (!this.#selector.repeats) return;
    if (this.#last !== null) pool.give(this.#last);
    this.#last = pool.share(scaled);
  }

  /** `facts` describe the failed part; default: the encoder. */
  fail(error: unknown, part: EncodePart, facts = faultFacts(error, part, { module: this.#module, errors: this.#errors })): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#tools.sink.onFailed(this.encode.id, messageOf(error), part, facts);
  }

  /** Resolves when the encoder is gone. Idempotent. */
  async close(): Promise<void> {
    this.queue.close();
    await this.#running;
    if (this.#last !== null) this.#tools.pool.give(this.#last);
    this.#last = null;
  }

  get #framerate(): number {
    const { framerate, skipFrames } = this.encode;
    if (skipFrames >= 0) return this.#sourceRate / (skipFrames + 1);
    return framerate > 0 ? framerate : this.#sourceRate;
  }

  #durationOf(sourceDuration: number): number {
    const { framerate, skipFrames } = this.encode;
    if (skipFrames >= 0) return sourceDuration * (skipFrames + 1);
    return framerate > 0 ? Math.round(90_000 / framerate) : sourceDuration;
  }

  #keyframeAt(pts: number, repeated: boolean): boolean {
    const scheduled = this.#selector.repeats ? this.#isDue(pts, this.#sourceKeyframe && !repeated) : this.#keyframeOwed;
    if (!repeated) this.#sourceKeyframe = false;
    const keyframe = scheduled || this.#keyframeWanted;
    this.#keyframeOwed = false;
    this.#keyframeWanted = false;
    return keyframe;
  }

  #isDue(pts: number, sourceKeyframe: boolean): boolean {
    const scheduled = this.#schedule?.due(pts, sourceKeyframe) === true;
    return this.#forced.due(pts) || scheduled;
  }

  async #encodeLoop(): Promise<void> {
    for (;;) {
      const waiting = await this.queue.take();
      if (waiting === undefined) break;
      if (!this.#failed && !this.queue.closed) await this.#encode(waiting);
      this.#tools.pool.give(waiting.frame);
      const congestion = this.#tools.sink.congestion();
      if (congestion !== null) await congestion;
    }
    this.#closeEncoder();
  }

  async #encode({ frame, pts, duration, keyframe }: Waiting): Promise<void> {
    let converted: RawFrame | null = null;
    let covered: RawFrame | null = null;
    let part: EncodePart = 'encoder';
    try {
      const format = frameFormat(frame);
      // The pixel format is the choice of the encoder, not a change of the source.
      const fresh = this.#format === null || !sameFrameFormat({ ...format, pixelFormat: this.#format.pixelFormat }, this.#format);
      if (fresh) {
        if (this.#opened !== null) await this.#opened.encoder.encode(null, this.#emit);
        this.#openEncoder(format);
      }
      this.#duration = duration;
      part = 'filter';
      if (!hasPixelFormat(frame, this.#pixelFormat)) converted = await this.#convert(frame, format);
      covered = await this.#cover(converted ?? frame, pts, fresh);
      part = 'encoder';
      const finished = covered ?? converted ?? frame;
      stampFrame(finished, pts, keyframe || fresh || this.#schedule === null);
      await this.#opened?.encoder.encode(finished, this.#emit);
      this.#errors.clear();
    } catch (error) {
      this.#closeEncoder();
      if (this.#errors.add() >= MAX_FAILURES) this.fail(error, part);
    } finally {
      if (converted !== null) this.#tools.pool.give(converted);
      if (covered !== null) this.#tools.pool.give(covered);
    }
  }

  /** The frame with the images over it; null where there are none. `fresh`: frames have another form than before. Throws EngineError. */
  async #cover(frame: RawFrame, pts: number, fresh: boolean): Promise<RawFrame | null> {
    const { overlays } = this.encode;
    if (overlays.length === 0) return null;
    if (fresh) {
      const { pool, sink } = this.#tools;
      const warn = (message: string): void => sink.notice('warn', message);
      this.#overlays = await openOverlays({ overlays, format: frameFormat(frame), pixelFormat: this.#pixelFormat, pool, warn });
    }
    if (this.#overlays === null) return null;
    stampFrame(frame, pts, false);
    return await this.#overlays.run(frame);
  }

  /** Converts a frame made for the previous encoder to the format of the present one. Throws EngineError. */
  async #convert(frame: RawFrame, format: FrameFormat): Promise<RawFrame> {
    const { pool } = this.#tools;
    const made: RawFrame[] = [];
    const chain = FilterChain.forFrames(format, { ...format, pixelFormat: this.#pixelFormat }, { pool, offThread: true, threads: 1 });
    try {
      await chain.run(frame, (converted) => made.push(converted));
    } finally {
      chain.close();
    }
    const [converted] = made;
    if (converted === undefined) throw new EngineError(`no frame in ${this.#pixelFormat}`);
    return converted;
  }

  #openEncoder(format: FrameFormat): void {
    this.#closeEncoder();
    const { opened, track } = this.encode.open(format, this.#framerate);
    this.#opened = opened;
    this.#module = opened.entry.module;
    this.#format = format;
    this.#pixelFormat = opened.entry.pixelFormat;
    this.#tools.sink.onTrack(this.encode.id, track);
  }

  #closeEncoder(): void {
    if (this.#opened !== null) closeEncoder(this.#tools, this.#opened);
    this.#overlays?.close();
    this.#overlays = null;
    this.#opened = null;
    this.#format = null;
  }

  readonly #emit = ({ data, pts, dts, keyframe }: EncodedData): void => {
    // With B-frames decoding starts before the first presentation time, which no timeline of the server has.
    const decode = Math.min(Math.max(dts, this.#lastDts + 1, 0), Math.max(pts, this.#lastDts + 1, 0));
    this.#lastDts = decode;
    this.#tools.sink.onPacket(this.encode.id, {
      pts: Math.max(pts, decode),
      dts: decode,
      duration: Math.round(this.#duration),
      keyframe,
      data: this.encode.layout(data),
    });
  };
}
