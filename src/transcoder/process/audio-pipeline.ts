/** One inbound audio track: decoded once, then resampled and encoded for each encode. */
import type { EncodeAudioConfig } from '../../config/index.ts';
import type { AudioCodec } from '../../media/codec.ts';
import { rescale, type Timebase } from '../../media/timebase.ts';
import { messageOf } from '../../util/message-of.ts';
import { configBytes, type SourceMessage } from '../messages.ts';
import { audioTrackMessage } from './encoded-track.ts';
import { closeEncoder, type OpenEncoder, openEncoder } from './encoder-opening.ts';
import { tuneAudio } from './encoder-tuning.ts';
import { Decoder } from './engine/decoder.ts';
import { type EncodedData, Encoder, sampleFormatOf, sampleRatesOf } from './engine/encoder.ts';
import { FilterChain } from './engine/filter-chain.ts';
import { type SampleFormat, sampleFormat, stampFrame } from './engine/frame-properties.ts';
import type { RawFrame } from './engine/library.ts';
import { FrameQueue } from './frame-queue.ts';
import { AUDIO_WINDOW, type Pipeline, type PipelineInput, type PipelineTools } from './pipeline.ts';

/** Decoded blocks that wait for the resamplers. */
const FILTER_THRESHOLD = 16;
/** A hole longer than this, seconds, is left open instead of filled with silence. */
const MAX_SILENCE_S = 10;
const OPUS_RATE = 48_000;
const DEFAULT_BLOCK = 1024;
const DEFAULT_BITRATE = 128_000;
/** Encoders that fail this often in a row are given up. */
const MAX_FAILURES = 3;

/** More than any source has; damaged headers announce up to 64. */
const MAX_CHANNELS = 8;
/** Blocks of another form than those before until it is believed, and the blocks among which they must come. */
const BELIEVED_AFTER = 4;
const TRIAL = 16;

/** An encode under the number its packets come back with. */
export interface AudioEncode {
  readonly id: number;
  readonly encode: EncodeAudioConfig;
}

/**
 * Made by its job, which closes it; `close` resolves when no codec works any more. Faults of decoders and encoders go to the sink, none is
 * thrown.
 */
export class AudioPipeline implements Pipeline {
  readonly queues;
  readonly #sourceId: number;
  readonly #tools: PipelineTools;
  readonly #input: FrameQueue<PipelineInput>;
  readonly #decoded: FrameQueue<RawFrame>;
  readonly #outputs: readonly AudioOutput[];
  readonly #running: Promise<unknown>;
  #decoder: Decoder | null = null;
  #source: SourceMessage | null = null;
  #timebase: Timebase = { num: 1, den: OPUS_RATE };
  /** Form of the blocks so far; 0 before the first of a source. */
  #sampleRate = 0;
  #channels = 0;
  /** Blocks of another form since the decoder began anew for the first of them, and blocks left to judge that by. */
  #strange = 0;
  #trial = 0;

  constructor(sourceId: number, encodes: readonly AudioEncode[], tools: PipelineTools) {
    this.#sourceId = sourceId;
    this.#tools = tools;
    const { clock } = tools;
    // Changes of the source come on top of the packets of the window.
    this.#input = new FrameQueue({ role: '', type: 'Packet', threshold: AUDIO_WINDOW * 2, clock });
    this.#decoded = new FrameQueue({ role: 'filter_audio', type: 'Frame', threshold: FILTER_THRESHOLD, clock });
    this.#outputs = encodes.map((encode) => new AudioOutput(encode, tools));
    this.queues = [this.#decoded];
    this.#running = Promise.all([this.#decodeLoop(), this.#encodeLoop()]);
  }

  push(input: PipelineInput): boolean {
    return this.#input.offer(input);
  }

  requestKeyframe(): void {
    // Every packet of audio is one.
  }

  async close(): Promise<void> {
    this.#input.close();
    this.#decoded.close();
    await this.#running;
  }

  async #decodeLoop(): Promise<void> {
    const decoded: RawFrame[] = [];
    for (;;) {
      const input = await this.#input.take();
      if (input === undefined || this.#decoded.closed) break;
      if ('source' in input) {
        this.#source = input.source;
        this.#sampleRate = 0;
        this.#trial = 0;
        this.#open(input.source);
        continue;
      }
      this.#tools.sink.onTaken(this.#sourceId);
      await this.#decoder?.decode(input.packet, (frame) => decoded.push(frame));
      for (const frame of decoded) {
        if (!this.#believes(frame)) {
          this.#tools.pool.give(frame);
          continue;
        }
        // The decoder's rate need not be the one the track announces: implicit SBR doubles it.
        stampFrame(frame, rescale(Number(frame.pts), this.#timebase, { num: 1, den: frame.sampleRate }), false);
        if (!(await this.#decoded.put(frame))) this.#tools.pool.give(frame);
      }
      decoded.length = 0;
    }
    this.#closeDecoder();
    this.#decoded.close();
  }

  /**
   * False for a block whose form only damage explains: it is dropped, and the decoder, which may have taken the damage for a new
   * configuration, begins anew. A form that comes back all the same is believed.
   */
  #believes(frame: RawFrame): boolean {
    const { sampleRate, channelLayout } = frame;
    const channels = channelLayout.nbChannels;
    if (this.#trial > 0) this.#trial -= 1;
    else this.#strange = 0;
    if (sampleRate === this.#sampleRate && channels === this.#channels) return true;
    const possible = channels > 0 && channels <= MAX_CHANNELS && sampleRate > 0;
    if (possible && (this.#sampleRate === 0 || this.#strange >= BELIEVED_AFTER)) {
      this.#sampleRate = sampleRate;
      this.#channels = channels;
      this.#strange = 0;
      this.#trial = 0;
      return true;
    }
    if (this.#strange === 0 && this.#source !== null) {
      this.#trial = TRIAL;
      this.#open(this.#source);
    }
    this.#strange += 1;
    return false;
  }

  #open(source: SourceMessage): void {
    this.#closeDecoder();
    if (source.type !== 'audio') return;
    this.#timebase = source.timebase;
    try {
      this.#decoder = new Decoder(
        {
          codec: source.codec,
          timebase: source.timebase,
          config: configBytes(source.config),
          threads: 1,
          offThread: false,
          sampleRate: source.sampleRate,
          channels: source.channels,
        },
        this.#tools.pool,
      );
      this.#tools.census.decoder(this.#decoder.name, 1);
    } catch (error) {
      for (const output of this.#outputs) output.fail(error);
    }
  }

  #closeDecoder(): void {
    if (this.#decoder === null) return;
    this.#tools.census.decoder(this.#decoder.name, -1);
    this.#decoder.close();
    this.#decoder = null;
  }

  async #encodeLoop(): Promise<void> {
    for (;;) {
      const frame = await this.#decoded.take();
      if (frame === undefined) break;
      for (const output of this.#outputs) await output.encode(frame);
      this.#tools.pool.give(frame);
      const congestion = this.#tools.sink.congestion();
      if (congestion !== null) await congestion;
    }
    for (const output of this.#outputs) output.close();
  }
}

/** One encode of an audio track. */
class AudioOutput {
  readonly #id: number;
  readonly #config: EncodeAudioConfig;
  readonly #tools: PipelineTools;
  #format: SampleFormat | null = null;
  #chain: FilterChain | null = null;
  #open: OpenEncoder | null = null;
  /** Of the encoder. */
  #sampleRate = 0;
  /** Where the next sample for the encoder belongs, in samples. */
  #next = Number.NaN;
  /** Where the next decoded sample is expected, in the source's samples. */
  #expected = Number.NaN;
  #failures = 0;
  #failed = false;
  readonly #blocks: RawFrame[] = [];

  constructor({ id, encode }: AudioEncode, tools: PipelineTools) {
    this.#id = id;
    this.#config = encode;
    this.#tools = tools;
  }

  async encode(frame: RawFrame): Promise<void> {
    if (this.#failed) return;
    try {
      const format = sampleFormat(frame);
      const pts = Number(frame.pts);
      this.#follow(format, pts);
      this.#expected = pts + frame.nbSamples;
      await this.#chain?.run(frame, (block) => this.#blocks.push(block));
      for (const block of this.#blocks) {
        stampFrame(block, this.#next, false);
        this.#next += block.nbSamples;
        await this.#open?.encoder.encode(block, this.#emit);
      }
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      this.#reset();
      if (this.#failures >= MAX_FAILURES) this.fail(error);
    } finally {
      for (const block of this.#blocks) this.#tools.pool.give(block);
      this.#blocks.length = 0;
    }
  }

  fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.close();
    this.#tools.sink.onFailed(this.#id, messageOf(error));
  }

  /** Idempotent. */
  close(): void {
    this.#reset();
    if (this.#open !== null) closeEncoder(this.#tools, this.#open);
    this.#open = null;
  }

  /** The chain starts anew when its input changes, or jumps further than silence can fill. */
  #follow(format: SampleFormat, pts: number): void {
    const jump = Math.abs(pts - this.#expected) / format.sampleRate;
    const same =
      this.#format !== null &&
      this.#format.sampleRate === format.sampleRate &&
      this.#format.layout === format.layout &&
      this.#format.sampleFormat === format.sampleFormat;
    if (this.#chain !== null && same && jump <= MAX_SILENCE_S) return;
    this.#reset();
    const open = this.#openEncoder(format);
    const channels = this.#channels(format);
    this.#chain = FilterChain.forSamples(
      format,
      {
        sampleRate: this.#sampleRate,
        channels,
        sampleFormat: sampleFormatOf(open.encoder.name),
        frameSize: open.encoder.frameSize > 0 ? open.encoder.frameSize : DEFAULT_BLOCK,
      },
      this.#tools.pool,
    );
    this.#format = format;
    const start = Math.round((pts * this.#sampleRate) / format.sampleRate);
    this.#next = Number.isNaN(this.#next) ? start : Math.max(this.#next, start);
  }

  #reset(): void {
    this.#chain?.close();
    this.#chain = null;
  }

  /** The encoder stays open for good: what it makes does not change with the source, unless it follows the source. */
  #openEncoder(format: SampleFormat): OpenEncoder {
    const channels = this.#channels(format);
    const rateFor = (name: string): number => this.#rate(format.sampleRate, name);
    if (this.#open !== null) {
      const { encoder } = this.#open;
      const followed = this.#config.samplerate === 0 || this.#config.channel === 0;
      if (!followed || (this.#sampleRate === rateFor(encoder.name) && this.#format?.channels === format.channels)) return this.#open;
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
    const rate = rateFor(open.encoder.name);
    if (this.#sampleRate !== 0 && rate !== this.#sampleRate) this.#next = Math.ceil((this.#next * rate) / this.#sampleRate);
    this.#sampleRate = rate;
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

  /** The configured rate, else the source's, moved to the nearest one that the encoder takes. */
  #rate(sourceRate: number, encoder: string): number {
    const wanted = this.#config.samplerate > 0 ? this.#config.samplerate : sourceRate;
    const possible = sampleRatesOf(encoder);
    // Opus counts time at 48 kHz whatever its input is.
    if (encoder === 'libopus') return OPUS_RATE;
    if (possible === null || possible.includes(wanted)) return wanted;
    return possible.reduce((best, rate) => (Math.abs(rate - wanted) < Math.abs(best - wanted) ? rate : best));
  }

  #channels(format: SampleFormat): number {
    if (this.#config.channel > 0) return this.#config.channel;
    const surround = this.#config.codec === 'aac';
    return surround ? format.channels : Math.min(2, format.channels);
  }

  readonly #emit = ({ data, pts, duration }: EncodedData): void => {
    // The encoder's run-in lies before the start of the stream.
    if (pts < 0) return;
    this.#tools.sink.onPacket(this.#id, { pts, dts: pts, duration, keyframe: true, data: data.slice() });
  };
}
