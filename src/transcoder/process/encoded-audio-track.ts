/** The audio of a file in a codec that players do not take: decoded, and encoded to AAC. */
import { AudioCodec, BitstreamFormat } from '../../media/codec.ts';
import { rescale, type Timebase, toSeconds } from '../../media/timebase.ts';
import type { FileTrackMessage } from '../messages.ts';
import { AudioOutput } from './audio-output.ts';
import { Decoder } from './engine/decoder.ts';
import type { FilePacket, FileStream } from './engine/demuxer.ts';
import { Encoder } from './engine/encoder.ts';
import { stampFrame } from './engine/frame-properties.ts';
import { EngineError, type RawFrame } from './engine/library.ts';
import type { FileTrack, MadePacketSink } from './file-track.ts';
import type { PipelineTools } from './pipeline.ts';

const RATE = 48_000;
const CHANNELS = 2;
const BITRATE = 160_000;
const ENCODER = 'aac';
const TIMEBASE: Timebase = { num: 1, den: RATE };
const ENCODE = { name: 'file', bypass: false, codec: 'aac', bitrate: BITRATE, samplerate: RATE, channel: CHANNELS } as const;

/** Options of an audio encode. `tools` are those of the process, without their sink. */
export interface EncodedAudioOptions {
  readonly stream: FileStream;
  readonly startSeconds: number;
  readonly sink: MadePacketSink;
  readonly tools: PipelineTools;
}

/** Always stereo at 48 kHz. */
export class EncodedAudioTrack implements FileTrack {
  readonly message: FileTrackMessage;
  readonly #id: number;
  readonly #options: EncodedAudioOptions;
  readonly #tools: PipelineTools;
  readonly #decoder: Decoder;
  #output: AudioOutput;
  #failure: EngineError | null = null;
  #closed = false;

  /** Throws EngineError when there is no decoder for it. */
  constructor(id: number, options: EncodedAudioOptions) {
    const { stream, tools } = options;
    this.#id = id;
    this.#options = options;
    this.#tools = {
      ...tools,
      sink: {
        ...tools.sink,
        onPacket: (_id, { data, pts, dts, duration }) =>
          options.sink({ trackId: id, seconds: toSeconds(dts, TIMEBASE), pts, dts, duration, keyframe: true, data }),
        onFailed: (_id, reason) => {
          this.#failure = new EngineError(reason);
        },
      },
    };
    const encoder = Encoder.forSamples({ name: ENCODER, sampleRate: RATE, channels: CHANNELS, bitrate: BITRATE, threads: 1, options: {} });
    const { extraData } = encoder;
    encoder.close();
    this.#decoder = new Decoder(
      { codec: stream.parameters, timebase: stream.timebase, config: null, threads: 1, offThread: false },
      tools.pool,
    );
    this.#output = this.#openOutput();
    const { language } = stream;
    this.message = {
      ...{ id, type: 'audio', codec: AudioCodec.AAC, format: BitstreamFormat.AAC_RAW, timebase: TIMEBASE },
      config: extraData === null ? null : Buffer.from(extraData).toString('base64'),
      ...{ bitrateConf: BITRATE, sampleRate: RATE, channels: CHANNELS },
      ...(language !== '' && language !== 'und' && { language }),
    };
  }

  async push(packet: FilePacket): Promise<void> {
    const frames: RawFrame[] = [];
    await this.#decoder.decodePacket(packet, (frame) => frames.push(frame));
    await this.#encode(frames);
  }

  async finish(): Promise<void> {
    const frames: RawFrame[] = [];
    await this.#decoder.drain((frame) => frames.push(frame));
    await this.#encode(frames);
    await this.#output.finish();
    this.#check();
  }

  restart(): void {
    this.#decoder.flush();
    this.#output.close();
    this.#output = this.#openOutput();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#decoder.close();
    this.#output.close();
  }

  async #encode(frames: readonly RawFrame[]): Promise<void> {
    const { stream, startSeconds } = this.#options;
    for (const frame of frames) {
      const { sampleRate } = frame;
      if (sampleRate > 0) {
        const start = Math.round(startSeconds * sampleRate);
        stampFrame(frame, rescale(Number(frame.pts), stream.timebase, { num: 1, den: sampleRate }) - start, false);
        await this.#output.encode(frame);
      }
      this.#tools.pool.give(frame);
    }
    this.#check();
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  #openOutput(): AudioOutput {
    return new AudioOutput({ id: this.#id, encode: ENCODE }, this.#tools);
  }
}
