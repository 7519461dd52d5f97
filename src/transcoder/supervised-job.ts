import type { QueueRegistry } from '../core/queue-registry.ts';
import type { TranscodeListener, Transcoder, TranscodeSession } from '../core/transcoding.ts';
import type { Packet } from '../media/packet.ts';
import { isMediaTrack, type Track } from '../media/track.ts';
import type { BoundedQueue } from '../util/bounded-queue.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { EncodeOutput } from './encode-output.ts';
import type { FrameWriter } from './frame-writer.ts';
import { type ChildQueue, encodeMessages, type FailedMessage, type NoticeMessage, type OpenMessage } from './messages.ts';
import { FrameFlag, type FrameHeader, FrameType } from './process-frames.ts';
import { DECODER_THRESHOLD, SourceFeed } from './source-feed.ts';
import type { TranscoderCounts } from './transcoder-metrics.ts';

/** Options of a job, from the core. */
export type JobOptions = Parameters<Transcoder['open']>[0];

/** A job of this weight has a process of its own. */
export const FULL_WEIGHT = 100;
/** Minimum interval between two warnings about drops. */
const DROP_WARNING_MS = 10_000;
const VIDEO_WEIGHT = 50;
const LIGHT_WEIGHT = 10;
const NO_HARDWARE = { enable: false, modules: '' };

/** Dependencies of a job, from the supervisor. */
export interface SupervisedJobOptions {
  /** Number on the wire. */
  readonly id: number;
  readonly job: JobOptions;
  readonly listener: TranscodeListener;
  readonly queues: QueueRegistry;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onClose: (job: SupervisedJob) => void;
  /** Counters of the server; absent: nothing is counted. */
  readonly counts?: TranscoderCounts;
}

/** The encodes of one inbound stream, on the server's side. It outlives the processes that do the work. */
export class SupervisedJob implements TranscodeSession {
  readonly id: number;
  /** The part of a process it uses, of `FULL_WEIGHT`. */
  readonly weight: number;
  readonly #options: SupervisedJobOptions;
  readonly #urn: string;
  /** By the id of the encode. */
  readonly #outputs: ReadonlyMap<number, EncodeOutput>;
  readonly #sources: ReadonlySet<number>;
  readonly #feeds = new Map<number, SourceFeed>();
  readonly #childQueues = new Map<string, BoundedQueue<never>>();
  #tracks: readonly Track[] = [];
  #writer: FrameWriter | null = null;
  #warnedAt = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(options: SupervisedJobOptions) {
    const { vhost, app, stream, encodes } = options.job;
    this.id = options.id;
    this.#options = options;
    this.#urn = `mngq:v=${vhost}#${app}:s=/${stream}:p=trs:r=`;
    this.#outputs = new Map(encodes.map((encode) => [encode.id, new EncodeOutput(encode, options.listener)]));
    this.#sources = new Set(encodes.map((encode) => encode.sourceId));
    this.weight = Math.min(
      FULL_WEIGHT,
      encodes.reduce((sum, { type }) => sum + (type === 'video' ? VIDEO_WEIGHT : LIGHT_WEIGHT), 0),
    );
  }

  get logger(): Logger {
    return this.#options.logger;
  }

  setTracks(tracks: readonly Track[]): void {
    if (this.#closed) return;
    this.#tracks = tracks;
    for (const track of tracks) this.#feedOf(track);
  }

  push(packet: Packet): void {
    if (this.#closed) return;
    const feed = this.#feedOf(packet.track);
    if (feed === null) return;
    feed.push(packet);
    if (this.#options.counts !== undefined) this.#options.counts.received += 1;
    if (feed.queue.dropped > feed.reportedDrops) this.#warnOfDrops(feed);
    if (this.#writer !== null) feed.pump(this.id, this.#writer);
  }

  requestKeyframe(encodeId: number, pts = 0): void {
    if (!this.#outputs.has(encodeId) || this.#writer === null) return;
    this.#writer.write({ type: FrameType.KEYFRAME, flags: 0, job: this.id, id: encodeId, pts, dts: 0, duration: 0 });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const feed of this.#feeds.values()) this.#options.queues.remove(feed.queue);
    for (const queue of this.#childQueues.values()) this.#options.queues.remove(queue);
    this.#feeds.clear();
    this.#childQueues.clear();
    this.#options.onClose(this);
  }

  /** A process has been assigned: it gets the encodes and the waiting packets. */
  start(writer: FrameWriter): void {
    const { job } = this.#options;
    this.#writer = writer;
    const open: OpenMessage = {
      ...encodeMessages([...this.#outputs.values()].filter(({ failed }) => !failed).map(({ request }) => request)),
      decoderThreads: job.decoderThreads,
      bypassedSources: job.bypassedSources ?? [],
      hardware: job.hardware ?? NO_HARDWARE,
      hardwareDecoding: job.hardwareDecoding ?? NO_HARDWARE,
    };
    writer.writeJson({ type: FrameType.OPEN, job: this.id }, open);
    for (const feed of this.#feeds.values()) feed.pump(this.id, writer);
  }

  /** The process is gone: packets wait for the next one, which starts with a keyframe. */
  restart(): void {
    this.#writer = null;
    for (const feed of this.#feeds.values()) feed.restart();
  }

  /** Fails all encodes that have not failed yet: there is no process for the job, or it met an internal error. */
  fail(reason: string): void {
    this.#countFailures(this.#outputs.size);
    for (const output of this.#outputs.values()) this.#guard(() => output.onFailed(reason, 'encoder'));
  }

  /** A round of the watch: returns the rounds in which the process took no packet of a track, although some waited. */
  look(): number {
    let most = 0;
    for (const feed of this.#feeds.values()) most = Math.max(most, feed.look());
    return most;
  }

  /** Takes a frame of the job from its process. */
  onFrame(header: FrameHeader, payload: Buffer): void {
    if (this.#closed) return;
    switch (header.type) {
      case FrameType.TAKEN: {
        const feed = this.#feeds.get(header.id);
        if (feed === undefined || this.#writer === null) return;
        feed.taken(header.duration);
        feed.pump(this.id, this.#writer);
        return;
      }
      case FrameType.PACKET: {
        const { pts, dts, duration } = header;
        const keyframe = (header.flags & FrameFlag.KEYFRAME) !== 0;
        const output = this.#outputs.get(header.id);
        if (output !== undefined && this.#options.counts !== undefined) this.#options.counts.encoded[output.request.type] += 1;
        this.#guard(() => output?.onPacket({ encodeId: header.id, pts, dts, duration, keyframe, data: payload }));
        return;
      }
      case FrameType.TRACK:
        this.#onTrack(header.id, payload.toString());
        return;
      case FrameType.FAILED: {
        const { reason, part, ...facts } = JSON.parse(payload.toString()) as FailedMessage;
        this.#countFailures(1);
        this.#guard(() => this.#outputs.get(header.id)?.onFailed(reason, part, facts));
        return;
      }
      case FrameType.NOTICE: {
        const { level, message } = JSON.parse(payload.toString()) as NoticeMessage;
        this.logger[level]({}, message);
        return;
      }
      default:
        this.logger.warn({ type: header.type }, 'a transcoder process sent an invalid message');
    }
  }

  /** Shows the queues inside the process under the names of the contract. */
  showQueues(queues: readonly ChildQueue[]): void {
    if (this.#closed) return;
    queues.forEach((figures, index) => {
      const key = `${index} ${figures.role}`;
      let queue = this.#childQueues.get(key);
      if (queue === undefined) {
        const { role, type, threshold } = figures;
        queue = this.#options.queues.create<never>({ urn: `${this.#urn}${role}`, type, threshold });
        this.#childQueues.set(key, queue);
      }
      queue.mirror(figures);
    });
  }

  #countFailures(count: number): void {
    if (this.#options.counts !== undefined) this.#options.counts.failures += count;
  }

  #onTrack(encodeId: number, json: string): void {
    const output = this.#outputs.get(encodeId);
    if (output === undefined) return;
    const source = this.#tracks.find(({ id }) => id === output.request.sourceId);
    this.#guard(() => output.onTrack(json, source));
  }

  /** Warns now and then that encoding is slower than the stream. */
  #warnOfDrops(feed: SourceFeed): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#warnedAt < DROP_WARNING_MS) return;
    this.#warnedAt = now;
    const dropped = feed.queue.dropped - feed.reportedDrops;
    feed.reportedDrops = feed.queue.dropped;
    this.logger.warn({ track: feed.id, dropped }, `encoding is slower than the stream: dropped ${dropped} packets of track ${feed.id}`);
  }

  /** Null for tracks without an encode. */
  #feedOf(track: Track): SourceFeed | null {
    const known = this.#feeds.get(track.id);
    if (known !== undefined) return known;
    if (!isMediaTrack(track) || !this.#sources.has(track.id)) return null;
    const video = track.type === 'video';
    const queue = this.#options.queues.create<Packet>({
      urn: `${this.#urn}decoder_${track.codec.toLowerCase()}_${track.id}`,
      type: 'Packet',
      threshold: video ? DECODER_THRESHOLD.video : DECODER_THRESHOLD.audio,
    });
    const { onlyKeyframes, readAhead = false } = this.#options.job;
    const feed = new SourceFeed({ id: track.id, video, queue, onlyKeyframes, keepsLate: readAhead });
    this.#feeds.set(track.id, feed);
    return feed;
  }

  /** A listener that throws must not take the other jobs of the process along. */
  #guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.logger.error({ err: error }, 'a stream failed to process the output of the transcoder');
    }
  }
}
