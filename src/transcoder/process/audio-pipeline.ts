/** One inbound audio track: decoded once, then resampled and encoded for each encode. */
import { rescale, type Timebase } from '../../media/timebase.ts';
import { CodecModule } from '../encoder-catalogue.ts';
import { AUDIO_WINDOW, configBytes, type SourceMessage } from '../messages.ts';
import { type AudioEncode, AudioOutput } from './audio-output.ts';
import { Decoder } from './engine/decoder.ts';
import { stampFrame } from './engine/frame-properties.ts';
import type { RawFrame } from './engine/library.ts';
import { FrameQueue } from './frame-queue.ts';
import type { Pipeline, PipelineInput, PipelineTools } from './pipeline.ts';

/** Decoded blocks that wait for the resamplers. */
const MAX_DECODED_BLOCKS = 16;
const OPUS_RATE = 48_000;
/** Limit of channels, which no source reaches; damaged headers announce up to 64. */
const MAX_CHANNELS = 8;
/** Blocks of a new format before the change is accepted, and the number of blocks within which they must come. */
const BELIEVED_AFTER = 4;
const TRIAL = 16;

/**
 * Made and closed by its job; `close` resolves when no codec is running. Faults of decoders and encoders go to the sink, none is thrown.
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
  /** Format of the blocks so far; 0 before the first block. */
  #sampleRate = 0;
  #channels = 0;
  /** Blocks of another format since the decoder was restarted for the first of them, and the number of blocks left to judge by. */
  #unsupported = 0;
  #trial = 0;

  constructor(sourceId: number, encodes: readonly AudioEncode[], tools: PipelineTools) {
    this.#sourceId = sourceId;
    this.#tools = tools;
    const { clock } = tools;
    // Changes of the source come on top of the packets of the window.
    this.#input = new FrameQueue({ role: '', type: 'Packet', threshold: AUDIO_WINDOW * 2, clock });
    this.#decoded = new FrameQueue({ role: 'filter_audio', type: 'Frame', threshold: MAX_DECODED_BLOCKS, clock });
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
   * False for a block whose format can only come from damage: it is dropped, and the decoder, which may have taken the damage for a new
   * configuration, restarts. A format that keeps coming is accepted.
   */
  #believes(frame: RawFrame): boolean {
    const { sampleRate, channelLayout } = frame;
    const channels = channelLayout.nbChannels;
    if (this.#trial > 0) this.#trial -= 1;
    else this.#unsupported = 0;
    if (sampleRate === this.#sampleRate && channels === this.#channels) return true;
    const possible = channels > 0 && channels <= MAX_CHANNELS && sampleRate > 0;
    if (possible && (this.#sampleRate === 0 || this.#unsupported >= BELIEVED_AFTER)) {
      this.#sampleRate = sampleRate;
      this.#channels = channels;
      this.#unsupported = 0;
      this.#trial = 0;
      return true;
    }
    if (this.#unsupported === 0 && this.#source !== null) {
      this.#trial = TRIAL;
      this.#open(this.#source);
    }
    this.#unsupported += 1;
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
      for (const output of this.#outputs) output.fail(error, 'decoder', { module: CodecModule.DEFAULT });
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
