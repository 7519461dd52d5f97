import type { Packet } from '../media/packet.ts';
import { isMovingPicture, type Track } from '../media/track.ts';
import type { BoundedQueue } from '../util/bounded-queue.ts';
import type { Logger } from '../util/logger.ts';
import type { CloseReason } from './ingest.ts';
import type { PublisherKind } from './kinds.ts';
import type { Playlist } from './playlist.ts';
import type { PublishableStream, Publisher, PublisherStream, SessionHandle, SessionRequest } from './publishing.ts';
import type { QueueRegistry } from './queue-registry.ts';
import type { SessionRegistry } from './session-registry.ts';
import { type TrackMeter, TrackMeters } from './track-meter.ts';
import type { TrafficMeter } from './traffic-meter.ts';

/** Packets a publisher may lag behind before its stream drops to the next keyframe. */
const PUBLISHER_QUEUE_THRESHOLD = 500;

/** A publisher with its part of the application's configuration. */
export interface EnabledPublisher {
  readonly publisher: Publisher;
  readonly settings: unknown;
}

interface Consumer {
  readonly kind: PublisherKind;
  readonly stream: PublisherStream;
  readonly queue: BoundedQueue<Packet>;
  /** After a drop nothing passes until the next video keyframe (or any packet of a stream without video). */
  skipping: boolean;
  /** Video tracks whose own keyframe has not come since the last drop; null when there is none. */
  awaitingKeyframe: Set<number> | null;
}

/** What an output profile makes of an inbound stream: the tracks that publishers serve. */
export class OutboundStream implements PublishableStream {
  readonly id: number;
  readonly vhost: string;
  readonly app: string;
  readonly name: string;
  readonly sourceName: string;
  readonly fromOriginMap: boolean;
  readonly meter: TrafficMeter;
  tracks: readonly Track[] = [];
  playlists: readonly Playlist[] = [];
  startedAt = 0;
  readonly requestKeyframe: (trackId: number) => void;
  readonly attend: () => void;
  readonly #sessions: SessionRegistry;
  readonly #queues: QueueRegistry;
  readonly #logger: Logger;
  readonly #meters = new TrackMeters();
  readonly #consumers: Consumer[] = [];
  #videoIds: readonly number[] = [];
  #closed = false;

  constructor(options: {
    id: number;
    vhost: string;
    app: string;
    name: string;
    sourceName: string;
    fromOriginMap: boolean;
    meter: TrafficMeter;
    sessions: SessionRegistry;
    queues: QueueRegistry;
    logger: Logger;
    requestKeyframe: (trackId: number) => void;
    attend: () => void;
  }) {
    this.id = options.id;
    this.vhost = options.vhost;
    this.app = options.app;
    this.name = options.name;
    this.sourceName = options.sourceName;
    this.fromOriginMap = options.fromOriginMap;
    this.meter = options.meter;
    this.#sessions = options.sessions;
    this.#queues = options.queues;
    this.#logger = options.logger;
    this.requestKeyframe = options.requestKeyframe;
    this.attend = options.attend;
  }

  openSession(request: SessionRequest): SessionHandle {
    return this.#sessions.open(request);
  }

  figures(trackId: number): TrackMeter {
    return this.#meters.of(trackId);
  }

  /** The publishers that serve this stream now. */
  get publisherKinds(): readonly PublisherKind[] {
    return this.#consumers.map((consumer) => consumer.kind);
  }

  /** What the publishers have to tell the operator about their viewers. */
  get warnings(): readonly string[] {
    return this.#consumers.flatMap(({ stream }) => stream.warnings ?? []);
  }

  /** A publisher needs packets as they come. */
  get attended(): boolean {
    for (const { stream } of this.#consumers) if (stream.attended !== false) return true;
    return false;
  }

  /** A publisher that cannot take the stream is left out; the others serve it. */
  attach({ publisher, settings }: EnabledPublisher): void {
    let stream: PublisherStream;
    try {
      stream = publisher.attach(this, settings);
    } catch (error) {
      this.#logger.error({ publisher: publisher.kind, err: error }, `publisher '${publisher.kind}' failed to take the stream`);
      return;
    }
    const queue = this.#queues.create<Packet>({
      urn: `mngq:v=${this.vhost}#${this.app}:s=/${this.name}:p=pub:r=streamworker_[${publisher.kind}]_0`,
      type: 'Packet',
      threshold: PUBLISHER_QUEUE_THRESHOLD,
    });
    this.#consumers.push({ kind: publisher.kind, stream, queue, skipping: false, awaitingKeyframe: null });
  }

  setTracks(tracks: readonly Track[], playlists: readonly Playlist[]): void {
    // What was pushed before belongs to the tracks as they were.
    this.drain();
    this.tracks = tracks;
    this.playlists = playlists;
    this.#videoIds = tracks.filter(isMovingPicture).map((track) => track.id);
    for (const consumer of [...this.#consumers]) this.#guard(consumer, () => consumer.stream.onTracks(tracks));
  }

  /** Queues `packet` for every publisher; a full queue drops up to the next keyframe. */
  push(packet: Packet): void {
    this.figures(packet.track.id).count(packet);
    for (const consumer of this.#consumers) {
      if (!this.#passes(packet, consumer)) {
        consumer.queue.countDrop();
      } else if (!consumer.queue.push(packet)) {
        consumer.queue.dropAll();
        consumer.queue.countDrop();
        consumer.skipping = true;
        consumer.awaitingKeyframe = new Set(this.#videoIds);
      }
    }
  }

  /** False while `consumer` skips to keyframes after a drop: each video track goes on with its own. */
  #passes(packet: Packet, consumer: Consumer): boolean {
    const waiting = consumer.awaitingKeyframe;
    if (waiting === null) return true;
    const { id } = packet.track;
    if (packet.keyframe) waiting.delete(id);
    const isVideo = this.#videoIds.includes(id);
    if (isVideo ? !packet.keyframe && waiting.has(id) : consumer.skipping && this.#videoIds.length > 0) return false;
    consumer.skipping = false;
    if (waiting.size === 0) consumer.awaitingKeyframe = null;
    return true;
  }

  /** Hands every queued packet to the publishers. */
  drain(): void {
    for (let index = 0; index < this.#consumers.length; index += 1) {
      const consumer = this.#consumers[index];
      if (consumer === undefined || consumer.queue.size === 0) continue;
      try {
        for (let packet = consumer.queue.shift(); packet !== undefined; packet = consumer.queue.shift()) {
          consumer.stream.onPacket(packet);
        }
        consumer.stream.onDrained?.();
      } catch (error) {
        this.#fail(consumer, error);
        index -= 1;
      }
    }
  }

  close(reason: CloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const consumer of this.#consumers) {
      this.#queues.remove(consumer.queue);
      try {
        consumer.stream.close(reason);
      } catch (error) {
        this.#logger.error({ publisher: consumer.kind, err: error }, 'publisher failed while closing a stream');
      }
    }
    this.#consumers.length = 0;
  }

  #guard(consumer: Consumer, action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#fail(consumer, error);
    }
  }

  /** A publisher that throws loses this stream; the others go on. */
  #fail(consumer: Consumer, error: unknown): void {
    this.#logger.error({ publisher: consumer.kind, err: error }, 'publisher failed, it no longer serves this stream');
    const index = this.#consumers.indexOf(consumer);
    if (index >= 0) this.#consumers.splice(index, 1);
    this.#queues.remove(consumer.queue);
    try {
      consumer.stream.close({ code: 'peer-error', detail: 'publisher failed' });
    } catch {
      // The failure above is the one to report.
    }
  }
}
