import { isDeepStrictEqual } from 'node:util';
import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import type { BoundedQueue } from '../util/bounded-queue.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { CloseReason, IngestRequest, IngestStream, SourcePacket, SourceTrack } from './ingest.ts';
import type { ProviderKind, SourceType } from './kinds.ts';
import { MediaRouter } from './media-router.ts';
import type { OutboundStream } from './outbound-stream.ts';
import type { Playlist } from './playlist.ts';
import type { QueueRegistry } from './queue-registry.ts';
import type { StreamOutputs } from './stream-outputs.ts';
import { type TrackMeter, TrackMeters } from './track-meter.ts';
import type { TrafficMeter } from './traffic-meter.ts';

/** Packets that may wait between a provider and the router. */
const INBOUND_QUEUE_THRESHOLD = 1000;
/** Packets waiting at which the provider is asked to stop reading, and to go on. */
const CONGESTED_FROM = 512;
const RELIEVED_AT = 128;
/** Packets handed on in one turn of the event loop, so that one stream cannot hold up the others. */
const PACKETS_PER_TURN = 256;
const SILENCE_CHECK_MS = 100;

export interface InboundStreamOptions {
  readonly id: number;
  readonly vhost: string;
  readonly app: string;
  readonly request: IngestRequest;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queues: QueueRegistry;
  readonly meter: TrafficMeter;
  /** Ends the stream after this long without packets, ms; 0 waits forever. */
  readonly silenceTimeoutMs: number;
  /** Timestamps stay those of the source instead of starting at 0. */
  readonly keepSourceTime: boolean;
  /** What becomes of the stream; made anew for each stream and closed by it. */
  readonly createOutputs: (stream: InboundStream) => StreamOutputs;
  /** The stream has ended; the owner forgets it. */
  readonly onEnd: (stream: InboundStream, reason: CloseReason) => void;
}

/** A stream as it comes in, before output profiles. */
export class InboundStream implements IngestStream {
  readonly id: number;
  readonly vhost: string;
  readonly app: string;
  readonly name: string;
  readonly provider: ProviderKind;
  readonly sourceType: SourceType;
  /** Its output streams carry all tracks as they are. */
  readonly passthrough: boolean;
  /** Wall clock, ms. */
  readonly createdAt: number;
  readonly meter: TrafficMeter;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #queues: QueueRegistry;
  readonly #queue: BoundedQueue<SourcePacket>;
  readonly #router: MediaRouter;
  readonly #onEnd: InboundStreamOptions['onEnd'];
  readonly #request: IngestRequest;
  readonly #meters = new TrackMeters();
  readonly #outputs: StreamOutputs;
  #sourceUrl: string;
  #playlists: readonly Playlist[] = [];
  #shown = false;
  #scheduled = false;
  #congested = false;
  #started = false;
  #closed = false;
  #lastPacketAt: number;
  #silenceTimer: NodeJS.Timeout | undefined;

  constructor(options: InboundStreamOptions) {
    const { request } = options;
    this.id = options.id;
    this.vhost = options.vhost;
    this.app = options.app;
    this.name = request.streamName;
    this.provider = request.provider;
    this.sourceType = request.sourceType;
    this.#sourceUrl = request.sourceUrl;
    this.passthrough = request.passthrough === true;
    this.createdAt = options.clock.now();
    this.meter = options.meter;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#queues = options.queues;
    this.#onEnd = options.onEnd;
    this.#request = request;
    this.#queue = options.queues.create<SourcePacket>({
      urn: `mngq:v=${this.vhost}#${this.app}:s=/${this.name}:p=imr:r=indicator`,
      type: 'SourcePacket',
      threshold: INBOUND_QUEUE_THRESHOLD,
    });
    this.#router = new MediaRouter(
      {
        onTracks: (tracks) => this.#onTracks(tracks),
        onPacket: (packet) => this.#onPacket(packet),
      },
      { keepSourceTime: options.keepSourceTime },
    );
    this.#outputs = options.createOutputs(this);
    this.#lastPacketAt = options.clock.monotonic();
    if (options.silenceTimeoutMs > 0) this.#watchSilence(options.silenceTimeoutMs);
    this.meter.ingestOpened(this.provider);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The source has announced its tracks. */
  get started(): boolean {
    return this.#started;
  }

  /** The API lists it: it has started, or its owner vouches for it. */
  get listed(): boolean {
    return this.#started || this.#shown;
  }

  /** Where the media comes from now. */
  get sourceUrl(): string {
    return this.#sourceUrl;
  }

  /** Lists the stream before its source has announced tracks: a pulled one whose source may be away. */
  show(): void {
    this.#shown = true;
  }

  /** The media comes from another place now. */
  moveTo(sourceUrl: string): void {
    this.#sourceUrl = sourceUrl;
  }

  get tracks(): readonly Track[] {
    return this.#router.tracks;
  }

  /** Playlists that the source announced with its tracks. */
  get playlists(): readonly Playlist[] {
    return this.#playlists;
  }

  get outputs(): readonly OutboundStream[] {
    return this.#outputs.streams;
  }

  figures(trackId: number): TrackMeter {
    return this.#meters.of(trackId);
  }

  setTracks(tracks: readonly SourceTrack[], playlists: readonly Playlist[] = []): void {
    if (this.#closed) return;
    this.#drain(Number.POSITIVE_INFINITY);
    const renewed = this.#started && this.passthrough && !isDeepStrictEqual(this.#playlists, playlists);
    this.#started = true;
    this.#playlists = playlists;
    this.#router.setTracks(tracks);
    if (renewed) this.#outputs.renewPlaylists();
  }

  push(packet: SourcePacket): void {
    if (this.#closed) return;
    this.#lastPacketAt = this.#clock.monotonic();
    // A lost packet would spoil the pictures up to the next keyframe. What came before the provider stopped is worked off.
    if (this.#queue.full) this.#drain(PACKETS_PER_TURN);
    if (this.#closed) return;
    this.#queue.push(packet);
    if (!this.#congested && this.#queue.size >= CONGESTED_FROM) {
      this.#congested = true;
      this.#request.onCongested?.();
    }
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(this.#turn);
    }
  }

  countBytes(bytes: number): void {
    if (!this.#closed) this.meter.countBytesIn(bytes);
  }

  close(reason: CloseReason): void {
    if (this.#closed) return;
    this.#drain(Number.POSITIVE_INFINITY);
    this.#closed = true;
    clearInterval(this.#silenceTimer);
    this.#queues.remove(this.#queue);
    this.#outputs.close(reason);
    this.meter.ingestClosed(this.provider);
    this.meter.retire();
    const { discarded, malformed } = this.#router.counters;
    this.#logger.info(
      {
        reason: reason.code,
        bytesIn: this.meter.in.total,
        seconds: Math.round((this.#clock.now() - this.createdAt) / 1000),
        discarded,
        malformed,
        jumps: this.#router.jumps,
      },
      `stream closed: ${reason.detail}`,
    );
    this.#onEnd(this, reason);
  }

  /** Ends the stream from the server's side: its connection goes too. Idempotent. */
  terminate(reason: CloseReason): void {
    if (this.#closed) return;
    this.close(reason);
    this.#request.onClose(reason);
  }

  #watchSilence(timeoutMs: number): void {
    this.#silenceTimer = setInterval(() => {
      if (this.#clock.monotonic() - this.#lastPacketAt >= timeoutMs) {
        this.terminate({ code: 'timeout', detail: `no packets for ${timeoutMs} ms (PacketSilenceTimeoutMs)` });
      }
    }, SILENCE_CHECK_MS);
  }

  readonly #turn = (): void => {
    this.#scheduled = false;
    if (this.#closed) return;
    this.#drain(PACKETS_PER_TURN);
    if (this.#queue.size > 0) {
      this.#scheduled = true;
      setImmediate(this.#turn);
    }
  };

  #drain(limit: number): void {
    for (let count = 1; count <= limit; count += 1) {
      const packet = this.#queue.shift();
      if (packet === undefined) break;
      this.#router.push(packet);
      // Before the queues of the publishers overflow.
      if (count % PACKETS_PER_TURN === 0) this.#outputs.drain();
    }
    this.#outputs.drain();
    if (this.#congested && this.#queue.size <= RELIEVED_AT) {
      this.#congested = false;
      this.#request.onRelieved?.();
    }
  }

  #onTracks(tracks: readonly Track[]): void {
    this.#outputs.setTracks(tracks, this.#router.complete);
    const words = tracks.map((track) =>
      track.type === 'data' ? 'data' : `${track.codec}${track.type === 'video' ? ` ${track.width}x${track.height}` : ''}`,
    );
    this.#logger.info({ tracks: words }, `stream has tracks: ${words.join(', ')}`);
  }

  #onPacket(packet: Packet): void {
    this.figures(packet.track.id).count(packet);
    this.#outputs.push(packet);
  }
}
