import type { EncodeAudioConfig } from '../../config/index.ts';
import type { AudioCodec } from '../../media/codec.ts';
import { messageOf } from '../../util/message-of.ts';
import type { CodecModule } from '../encoder-catalogue.ts';
import type { EncodePart } from '../messages.ts';
import { audioTrackMessage } from './encoded-track.ts';
import { closeEncoder, type OpenEncoder, openEncoder } from './encoder-opening.ts';
import { tuneAudio } from './encoder-tuning.ts';
import { type EncodedData, Encoder, sampleFormatOf, sampleRatesOf } from './engine/encoder.ts';
import { FilterChain } from './engine/filter-chain.ts';
import { type SampleFormat, sampleFormat, stampFrame } from './engine/frame-properties.ts';
import type { RawFrame } from './engine/library.ts';
import { ErrorRun, faultFacts } from './error-run.ts';
import type { PipelineTools } from './pipeline.ts';

/** A hole longer than this, seconds, is left open instead of filled with silence. */
const MAX_SILENCE_S = 10;
const OPUS_RATE = 48_000;
const DEFAULT_BLOCK = 1024;
const DEFAULT_BITRATE = 128_000;
/** Consecutive failures after which an encoder is given up. */
const MAX_FAILURES = 3;

/** An encode, with the number that its packets carry. */
export interface AudioEncode {
  readonly id: number;
  readonly encode: EncodeAudioConfig;
}

/** One encode of an audio track. Made and closed by the pipeline; faults go to the sink. */
export class AudioOutput {
  readonly #id: number;
  readonly #config: EncodeAudioConfig;
  readonly #tools: PipelineTools;
  #format: SampleFormat | null = null;
  #chain: FilterChain | null = null;
  #open: OpenEncoder | null = null;
  /** Sample rate of the encoder. */
  #sampleRate = 0;
  #channels = 0;
  /** Where the next sample for the encoder belongs, in samples. */
  #next = Number.NaN;
  /** Where the next decoded sample is expected, in the source's samples. */
  #expected = Number.NaN;
  readonly #errors: ErrorRun;
  /** Module of the encoder that opened last. */
  #module: CodecModule | null = null;
  #failed = false;
  /** The part at work. */
  #part: EncodePart = 'encoder';
  readonly #blocks: RawFrame[] = [];

  constructor({ id, encode }: AudioEncode, tools: PipelineTools) {
    this.#id = id;
    this.#config = encode;
    this.#tools = tools;
    this.#errors = new ErrorRun(tools.clock);
  }

  /** `frame` stays the caller's; its `pts` is in samples. */
  async encode(frame: RawFrame): Promise<void> {
    if (this.#failed) return;
    try {
      const format = sampleFormat(frame);
      const pts = Number(frame.pts);
      this.#follow(format, pts);
      this.#expected = pts + frame.nbSamples;
      this.#part = 'filter';
      await this.#chain?.run(frame, (block) => this.#blocks.push(block));
      await this.#encodeBlocks();
      this.#errors.clear();
    } catch (error) {
      this.#reset();
      if (this.#errors.add() >= MAX_FAILURES) this.fail(error, this.#part);
    } finally {
      for (const block of this.#blocks) this.#tools.pool.give(block);
      this.#blocks.length = 0;
    }
  }

  /** Sends the remaining output of filters and encoder, and closes. */
  async finish(): Promise<void> {
    if (this.#failed) return;
    try {
      this.#part = 'filter';
      await this.#chain?.drain((block) => this.#blocks.push(block));
      await this.#encodeBlocks();
      await this.#open?.encoder.encode(null, this.#emit);
    } catch (error) {
      this.fail(error, this.#part);
    } finally {
      for (const block of this.#blocks) this.#tools.pool.give(block);
      this.#blocks.length = 0;
      this.close();
    }
  }

  /** Fails the track; the sink is notified once. `facts` describe the failed part; default: the encoder. */
  fail(error: unknown, part: EncodePart, facts = faultFacts(error, part, { module: this.#module, errors: this.#errors })): void {
    if (this.#failed) return;
    this.#failed = true;
    this.close();
    this.#tools.sink.onFailed(this.#id, messageOf(error), part, facts);
  }

  /** Idempotent. */
  close(): void {
    this.#reset();
    if (this.#open !== null) closeEncoder(this.#tools, this.#open);
    this.#open = null;
  }

  async #encodeBlocks(): Promise<void> {
    this.#part = 'encoder';
    for (const block of this.#blocks) {
      stampFrame(block, this.#next, false);
      this.#next += block.nbSamples;
      await this.#open?.encoder.encode(block, this.#emit);
    }
  }

  /** The chain restarts when its input changes, or jumps further than silence can fill. */
  #follow(format: SampleFormat, pts: number): void {
    const jump = Math.abs(pts - this.#expected) / format.sampleRate;
    const same =
      this.#format !== null &&
      this.#format.sampleRate === format.sampleRate &&
      this.#format.layout === format.layout &&
      this.#format.sampleFormat === format.sampleFormat;
    if (this.#chain !== null && same && jump <= MAX_SILENCE_S) return;
    this.#reset();
    this.#part = 'encoder';
    const open = this.#openEncoder(format);
    this.#part = 'filter';
    const channels = this.#channels;
    this.#chain = FilterChain.forSamples(
      format,
      {
        sampleRate: this.#sampleRate,
        channels,
        sampleFormat: sampleFormatOf(open.encoder.name),
        frameSize: open.encoder.frameSize > 0 ? open.encoder.frameSize : DEFAULT_BLOCK,
        firstPts: this.#begin(format, pts),
      },
      this.#tools.pool,
    );
    this.#format = format;
  }

  /**
   * Start of the chain, in the source's samples; null: its first sample. After another chain it starts at the end of that one: players
   * count samples, and a gap between chains would shift all later audio away from the video.
   */
  #begin(format: SampleFormat, pts: number): number | null {
    const start = Math.round((pts * this.#sampleRate) / format.sampleRate);
    if (Math.abs(start - this.#next) <= MAX_SILENCE_S * this.#sampleRate)
      return Math.round((this.#next * format.sampleRate) / this.#sampleRate);
    this.#next = Number.isNaN(this.#next) ? start : Math.max(this.#next, start);
    return null;
  }

  #reset(): void {
    this.#chain?.close();
    this.#chain = null;
  }

  /**
   * The encoder stays open. An encoder that follows its source takes the rate of the first format and reopens only for more channels: a
   * format change is a discontinuity for all players, and a channel of mixed items would have a discontinuity at every boundary.
   */
  #openEncoder(format: SampleFormat): OpenEncoder {
    const channels = this.#channelsFor(format);
    const rateFor = (name: string): number => this.#rate(this.#sampleRate || format.sampleRate, name);
    if (this.#open !== null) {
      if (channels <= this.#channels) return this.#open;
      closeEncoder(this.#tools, this.#open);
      this.#open = null;
    }
    const bitrate = this.#config.bitrate ?? DEFAULT_BITRATE;
    const open = openEncoder(this.#tools, this.#config, (entry) =>
      Encoder.forSamples({
        name: entry.name,
        sampleRate: rateFor(entry.name),
        channels,
        bitrate,
        threads: 1,
        options: tuneAudio(entry),
      }),
    );
    this.#open = open;
    this.#module = open.entry.module;
    const rate = rateFor(open.encoder.name);
    if (this.#sampleRate !== 0 && rate !== this.#sampleRate) this.#next = Math.ceil((this.#next * rate) / this.#sampleRate);
    this.#sampleRate = rate;
    this.#channels = channels;
    this.#tools.sink.onTrack(
      this.#id,
      audioTrackMessage({
        codec: open.entry.codec as AudioCodec,
        extraData: open.encoder.extraData,
        sampleRate: rate,
        channels,
        bitrate,
      }),
    );
    return open;
  }

  /** The configured rate, else the source's; if the encoder does not support it, the nearest supported rate. */
  #rate(sourceRate: number, encoder: string): number {
    const wanted = this.#config.samplerate > 0 ? this.#config.samplerate : sourceRate;
    const possible = sampleRatesOf(encoder);
    // Opus time is 48 kHz for every input rate.
    if (encoder === 'libopus') return OPUS_RATE;
    if (possible === null || possible.includes(wanted)) return wanted;
    return possible.reduce((best, rate) => (Math.abs(rate - wanted) < Math.abs(best - wanted) ? rate : best));
  }

  #channelsFor(format: SampleFormat): number {
    if (this.#config.channel > 0) return this.#config.channel;
    const surround = this.#config.codec === 'aac';
    return surround ? format.channels : Math.min(2, format.channels);
  }

  readonly #emit = ({ data, pts, duration }: EncodedData): void => {
    // The encoder's priming samples lie before the start of the stream.
    if (pts < 0) return;
    this.#tools.sink.onPacket(this.#id, { pts, dts: pts, duration, keyframe: true, data: data.slice() });
  };
}
