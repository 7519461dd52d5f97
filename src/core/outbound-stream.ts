import type { OutputProfileConfig } from '../config/index.ts';
import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import type { Logger } from '../util/logger.ts';
import type { CloseReason } from './ingest.ts';
import type { PublisherKind } from './kinds.ts';
import type { PlannedTrack } from './output-profile.ts';
import type { Playlist } from './playlist.ts';
import type { PublishableStream, Publisher, PublisherStream, SessionHandle, SessionRequest } from './publishing.ts';
import { SegmentMarks } from './segment-marks.ts';
import type { SessionRegistry } from './session-registry.ts';
import { type TrackMeter, TrackMeters } from './track-meter.ts';
import type { TrafficMeter } from './traffic-meter.ts';
import type { EncodeFault, EncodeFaultFacts } from './transcoding.ts';
import { Urgency } from './urgency.ts';

/** A publisher with its part of the application's configuration. */
export interface EnabledPublisher {
  readonly publisher: Publisher;
  readonly settings: unknown;
}

interface Consumer {
  /** Name of the consumer, for the log. */
  readonly who: string;
  /** Null for a tap. */
  readonly kind: PublisherKind | null;
  readonly stream: PublisherStream;
}

/** A track that viewers should have but do not get. */
export interface LeftOut {
  readonly sentence: string;
  readonly fault: EncodeFault;
  readonly facts: EncodeFaultFacts;
  readonly trackId: number;
  /** Id of the track in the inbound stream. */
  readonly sourceTrackId: number;
  readonly profile: OutputProfileConfig;
  readonly kind: PlannedTrack['kind'];
}

/** The result of an output profile for an inbound stream: the tracks that publishers serve. */
export class OutboundStream implements PublishableStream {
  readonly id: number;
  readonly vhost: string;
  readonly app: string;
  readonly name: string;
  readonly sourceName: string;
  fromOriginMap: boolean;
  readonly marks = new SegmentMarks();
  readonly meter: TrafficMeter;
  tracks: readonly Track[] = [];
  playlists: readonly Playlist[] = [];
  startedAt = 0;
  /** Best present estimate of `startedAt`, for combining several streams. */
  estimatedStart: () => number = () => this.startedAt;
  /** Tracks that are left out although viewers should have them, with the reasons as sentences. */
  failures: readonly LeftOut[] = [];
  requestKeyframe: (trackId: number) => void;
  readonly wake: () => void;
  readonly hasRoom: (kind: PublisherKind) => boolean;
  readonly #onTracks: () => void;
  readonly #sessions: SessionRegistry;
  readonly #logger: Logger;
  readonly #meters = new TrackMeters();
  /** Packets handed to publishers. */
  packetsOut = 0;
  /** Never changed in place, because a consumer may leave while others are being called. */
  #consumers: readonly Consumer[] = [];
  /** Publishers have received packets without `onDrained`. */
  #undrained = false;
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
    logger: Logger;
    requestKeyframe: (trackId: number) => void;
    wake: () => void;
    /** Default: there is always room. */
    hasRoom?: (kind: PublisherKind) => boolean;
    /** The publishers have received new tracks. */
    onTracks?: () => void;
  }) {
    this.id = options.id;
    this.vhost = options.vhost;
    this.app = options.app;
    this.name = options.name;
    this.sourceName = options.sourceName;
    this.fromOriginMap = options.fromOriginMap;
    this.meter = options.meter;
    this.#sessions = options.sessions;
    this.#logger = options.logger;
    this.requestKeyframe = options.requestKeyframe;
    this.wake = options.wake;
    this.hasRoom = options.hasRoom ?? (() => true);
    this.#onTracks = options.onTracks ?? (() => undefined);
  }

  openSession(request: SessionRequest): SessionHandle {
    return this.#sessions.open(request);
  }

  figures(trackId: number): TrackMeter {
    return this.#meters.of(trackId);
  }

  /** Warnings for the operator: media that is left out, and publishers' notes about their viewers. */
  get warnings(): readonly string[] {
    return [...this.failures.map(({ sentence }) => sentence), ...this.#consumers.flatMap(({ stream }) => stream.warnings ?? [])];
  }

  /** How soon its publishers need packets. */
  get urgency(): Urgency {
    let most: Urgency = Urgency.NONE;
    for (const { stream } of this.#consumers) {
      const { urgency = Urgency.REAL_TIME } = stream;
      if (urgency > most) most = urgency;
    }
    return most;
  }

  /** When the publishers in a hurry need packets, wall clock ms: see `PublisherStream`. */
  get neededAt(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { stream } of this.#consumers) {
      const { urgency = Urgency.REAL_TIME } = stream;
      if (urgency >= Urgency.LOW_LATENCY) first = Math.min(first, stream.neededAt ?? Number.NEGATIVE_INFINITY);
    }
    return first;
  }

  /** Other streams of this server are made of it. */
  get tapped(): boolean {
    return this.#consumers.some(({ kind }) => kind === null);
  }

  /**
   * From now on also passes its tracks, packets and end to another stream of this server, which does not count as a viewer. Present tracks
   * are announced within this call. Returns a function that ends it; idempotent, and without effect once the stream has closed.
   */
  tap(who: string, stream: PublisherStream): () => void {
    const consumer: Consumer = { who, kind: null, stream };
    this.#consumers = [...this.#consumers, consumer];
    if (this.tracks.length > 0) stream.onTracks(this.tracks);
    this.wake();
    return () => this.#remove(consumer);
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
    this.#consumers = [...this.#consumers, { who: 'publisher', kind: publisher.kind, stream }];
  }

  setTracks(tracks: readonly Track[], playlists: readonly Playlist[]): void {
    // Earlier packets belong to the previous tracks.
    this.drain();
    this.tracks = tracks;
    this.playlists = playlists;
    for (const consumer of this.#consumers) {
      try {
        consumer.stream.onTracks(tracks);
      } catch (error) {
        this.#fail(consumer, error);
      }
    }
    this.#onTracks();
  }

  /** Passes `packet` to every publisher, one after the other. Publishers that wait for a viewer or a disk have queues of their own. */
  push(packet: Packet): void {
    this.#meters.of(packet.track.id).count(packet);
    this.packetsOut += 1;
    this.#undrained = true;
    for (const consumer of this.#consumers) {
      if (this.#closed) return;
      try {
        consumer.stream.onPacket(packet);
      } catch (error) {
        this.#fail(consumer, error);
      }
    }
  }

  /** Tells the publishers that the turn is complete. */
  drain(): void {
    if (!this.#undrained) return;
    this.#undrained = false;
    for (const consumer of this.#consumers) {
      if (this.#closed) return;
      try {
        consumer.stream.onDrained?.();
      } catch (error) {
        this.#fail(consumer, error);
      }
    }
  }

  close(reason: CloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    const consumers = this.#consumers;
    this.#consumers = [];
    for (const { who, kind, stream } of consumers) {
      try {
        stream.close(reason);
      } catch (error) {
        this.#logger.error({ ...(kind !== null && { publisher: kind }), err: error }, `${who} failed while closing a stream`);
      }
    }
  }

  #remove(consumer: Consumer): void {
    this.#consumers = this.#consumers.filter((other) => other !== consumer);
  }

  /** A publisher that throws loses this stream; the others continue. */
  #fail(consumer: Consumer, error: unknown): void {
    const { who, kind } = consumer;
    this.#logger.error({ ...(kind !== null && { publisher: kind }), err: error }, `${who} failed, it no longer serves this stream`);
    this.#remove(consumer);
    try {
      consumer.stream.close({ code: 'peer-error', detail: 'publisher failed' });
    } catch {
      // The caller reports the error that came first.
    }
  }
}
