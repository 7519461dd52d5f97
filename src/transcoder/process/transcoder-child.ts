/** A transcoder process from the inside: hands frames from the server to its jobs, and theirs back. */
import type { Duplex } from 'node:stream';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import type { Clock } from '../../util/clock.ts';
import { DEVICES, ENCODERS, HARDWARE_DECODERS } from '../encoder-catalogue.ts';
import { FrameWriter } from '../frame-writer.ts';
import type { FailedMessage, HelloMessage, NoticeMessage, OpenMessage, SourceMessage, StatusMessage, TrackMessage } from '../messages.ts';
import { FrameFlag, type FrameHeader, FrameReader, FrameType } from '../process-frames.ts';
import { ChildJob } from './child-job.ts';
import { CodecCensus } from './codec-census.ts';
import { decoderName, decoderWorks, deviceWorks, encoderWorks } from './engine/census.ts';
import { FramePool } from './engine/frame-pool.ts';
import { libraryVersion, silenceLibrary } from './engine/library.ts';
import type { OutputPacket, PipelineSink } from './pipeline.ts';

const STATUS_INTERVAL_MS = 1000;

/** The process has one. Needs no closing. */
export class TranscoderChild {
  readonly #writer: FrameWriter;
  readonly #reader = new FrameReader((header, payload) => this.#onFrame(header, payload));
  readonly #clock: Clock;
  readonly #cpus: number;
  readonly #jobs = new Map<number, ChildJob>();
  readonly #pool = new FramePool();
  readonly #census = new CodecCensus();
  #working: ReadonlySet<string> = new Set();

  constructor(socket: Duplex, options: { readonly clock: Clock; readonly cpus: number }) {
    this.#writer = new FrameWriter(socket);
    this.#clock = options.clock;
    this.#cpus = options.cpus;
  }

  /** Determines the abilities of the machine and sends HELLO; then reports every second. */
  start(): void {
    silenceLibrary();
    const missing = new Set(DEVICES.filter(({ device }) => !deviceWorks(device)).map(({ module }) => module));
    const encoders = ENCODERS.filter((entry) => !missing.has(entry.module) && encoderWorks(entry.name, entry.hardware ? entry : null));
    const software = [...Object.values(VideoCodec), ...Object.values(AudioCodec)].map(decoderName).filter((name) => name !== null);
    const hardware = HARDWARE_DECODERS.filter(({ name, codec, module }) => !missing.has(module) && decoderWorks(name, codec));
    const decoders = [...software, ...hardware.map(({ name }) => name)];
    const names = encoders.map(({ name }) => name);
    this.#working = new Set([...names, ...decoders]);
    const hello: HelloMessage = { version: libraryVersion(), encoders: names, decoders };
    this.#writer.writeJson({ type: FrameType.HELLO }, hello);
    setInterval(() => this.#report(), STATUS_INTERVAL_MS);
  }

  /** Bytes from the server. Throws ProtocolError, which ends the process. */
  receive(chunk: Buffer): void {
    this.#reader.push(chunk);
  }

  #onFrame(header: FrameHeader, payload: Buffer): void {
    const { job: jobId, id } = header;
    switch (header.type) {
      case FrameType.OPEN:
        this.#open(jobId, JSON.parse(payload.toString()) as OpenMessage);
        return;
      case FrameType.SOURCE:
        this.#jobs.get(jobId)?.setSource(id, JSON.parse(payload.toString()) as SourceMessage);
        return;
      case FrameType.PACKET:
        this.#jobs.get(jobId)?.push(id, {
          data: payload,
          pts: header.pts,
          dts: header.dts,
          duration: header.duration,
          discontinuity: (header.flags & FrameFlag.DISCONTINUITY) !== 0,
        });
        return;
      case FrameType.KEYFRAME:
        this.#jobs.get(jobId)?.requestKeyframe(id, header.pts);
        return;
      case FrameType.CLOSE:
        void this.#close(jobId);
        return;
      default:
        throw new Error(`frame of type ${header.type} is not for a transcoder process`);
    }
  }

  #open(jobId: number, message: OpenMessage): void {
    const job = new ChildJob(jobId, message, {
      clock: this.#clock,
      pool: this.#pool,
      census: this.#census,
      sink: this.#sink(jobId),
      hardware: message.hardware,
      hardwareDecoding: message.hardwareDecoding,
      working: this.#working,
      decoderThreads: message.decoderThreads,
      cpus: this.#cpus,
    });
    this.#jobs.set(jobId, job);
  }

  async #close(jobId: number): Promise<void> {
    const job = this.#jobs.get(jobId);
    this.#jobs.delete(jobId);
    await job?.close();
    this.#writer.write({ type: FrameType.CLOSED, flags: 0, job: jobId, id: 0, pts: 0, dts: 0, duration: 0 });
  }

  #sink(job: number): PipelineSink {
    const writer = this.#writer;
    return {
      onTrack: (id, track: TrackMessage) => writer.writeJson({ type: FrameType.TRACK, job, id }, track),
      onPacket: (id, { pts, dts, duration, keyframe, data }: OutputPacket) =>
        writer.write({ type: FrameType.PACKET, flags: keyframe ? FrameFlag.KEYFRAME : 0, job, id, pts, dts, duration }, data),
      onFailed: (id, reason, part, facts) =>
        writer.writeJson({ type: FrameType.FAILED, job, id }, { reason, part, ...facts } satisfies FailedMessage),
      onTaken: (id) => writer.write({ type: FrameType.TAKEN, flags: 0, job, id, pts: 0, dts: 0, duration: 1 }),
      notice: (level, message) => writer.writeJson({ type: FrameType.NOTICE, job }, { level, message } satisfies NoticeMessage),
      congestion: () => (writer.congested ? writer.drained() : null),
    };
  }

  #report(): void {
    const queues = Array.from(this.#jobs.values(), (job) => job.queueFigures()).flat();
    this.#writer.writeJson({ type: FrameType.STATUS }, { ...this.#census.figures, queues } satisfies StatusMessage);
  }
}
