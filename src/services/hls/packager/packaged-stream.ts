/** The common part of both publishers' streams: a feed with its memory and its archive, and the observers of the segments. */
import type { CloseReason } from '../../../core/ingest.ts';
import type { PublisherKind } from '../../../core/kinds.ts';
import type { PublishableStream, PublisherStream } from '../../../core/publishing.ts';
import { addressOf, internalAppName } from '../../../core/stream-address.ts';
import { Urgency } from '../../../core/urgency.ts';
import { MemoryBudget } from '../../../delivery/feed/memory-budget.ts';
import type { DeliveryFeed, FeedOpener, Span } from '../../../delivery/feed/messages.ts';
import type { Packet } from '../../../media/packet.ts';
import type { Track } from '../../../media/track.ts';
import { DvrArchive } from '../dvr/dvr-archive.ts';
import type { DvrStorage } from '../dvr/dvr-storage.ts';
import type { PackagingSettings } from '../wire/settings.ts';
import type { ObservedSegment, SegmentObserver, SegmentSource } from './segment-observer.ts';
import type { Rewinding, SegmentMemory } from './segment-window.ts';

/** Dependencies of a served stream; `storage` and `delivery` are shared by all streams. */
export interface PackagedStreamOptions<Settings extends PackagingSettings> {
  readonly stream: PublishableStream;
  readonly settings: Settings;
  readonly delivery: FeedOpener;
  readonly storage: DvrStorage;
  /** Bytes of shared memory; absent: `MAX_FEED_BYTES`. */
  readonly memoryBytes?: number;
  /** The stream has tracks and playlists. */
  readonly onStart?: (stream: SegmentSource) => void;
  /** The stream has ended. */
  readonly onClose?: (stream: SegmentSource) => void;
}

/** The particulars of one kind of stream at its feed. */
export interface PackagingKind {
  readonly kind: PublisherKind;
  /** Settings of its view. */
  readonly viewSettings: unknown;
  /** Distinguishes the DVR files of this run of the stream from those of others. */
  readonly run: string;
}

/** Ending of the file names of multivariant playlists. */
export const PLAYLIST_SUFFIX = '.m3u8';

/**
 * Made by the publisher, closed by the core, which ends its feed and its DVR files and notifies its observers. A second `close` has no
 * effect.
 */
export abstract class PackagedStream<Settings extends PackagingSettings> implements PublisherStream, SegmentSource {
  protected readonly stream: PublishableStream;
  protected readonly settings: Settings;
  protected readonly feed: DeliveryFeed;
  protected readonly memory: SegmentMemory;
  /** Null without DVR. */
  protected readonly rewinding: Rewinding | null;
  readonly #budget: MemoryBudget;
  readonly #observers = new Set<SegmentObserver>();
  readonly #onClose: ((stream: SegmentSource) => void) | undefined;
  #onStart: ((stream: SegmentSource) => void) | undefined;
  #concluded = false;
  #closed = false;

  constructor(options: PackagedStreamOptions<Settings>, { kind, viewSettings, run }: PackagingKind) {
    const { stream, settings, delivery, storage } = options;
    this.stream = stream;
    this.settings = settings;
    this.#onStart = options.onStart;
    this.#onClose = options.onClose;
    this.feed = delivery.openFeed({
      kind,
      address: addressOf(stream),
      crossDomains: settings.crossDomains ?? null,
      settings: viewSettings,
      bytesPerSecond: stream.tracks.reduce((sum, { bitrateConf }) => sum + bitrateConf, 0) / 8,
      snapshot: () => this.snapshot(),
      openSession: (request) => stream.openSession({ ...request, kind }),
      onWatched: () => stream.wake(),
      onBytesSent: (bytes) => stream.meter.countBytes(bytes),
    });
    this.#budget = new MemoryBudget(this.feed, options.memoryBytes);
    this.memory = {
      read: (spans) => this.feed.read(spans),
      release: (spans) => this.#budget.release(spans),
      asksBack: (spans) => this.#budget.asksBack(this.windowCount, spans),
    };
    this.rewinding = openArchive(options, storage, run);
  }

  /** Dumped media should survive a kill. */
  get urgency(): Urgency {
    return this.isObserved ? Urgency.LOW_LATENCY : Urgency.NONE;
  }

  /** Its feed is closed. */
  get closed(): boolean {
    return this.#closed;
  }

  /** True once `concludeHlsLive` was called. */
  get concluded(): boolean {
    return this.#concluded;
  }

  /** Internal path, `#<vhost>#<app>/<stream>`. */
  get path(): string {
    const { vhost, app, name } = this.stream;
    return `${internalAppName(vhost, app)}/${name}`;
  }

  abstract get playlistNames(): readonly string[];

  /** Settles when DVR files handed over so far are written or removed. */
  get settled(): Promise<void> {
    return this.rewinding?.archive.settled ?? Promise.resolve();
  }

  observe(observer: SegmentObserver): void {
    if (this.#closed) {
      observer.streamEnded();
      return;
    }
    this.#observers.add(observer);
    this.stream.wake();
  }

  unobserve(observer: SegmentObserver): void {
    this.#observers.delete(observer);
  }

  abstract newestSegments(): ObservedSegment[];

  plainMultivariants(names: readonly string[]): [name: string, text: string][] {
    return this.multivariantTexts().filter(([name]) => names.length === 0 || names.includes(name));
  }

  abstract onTracks(tracks: readonly Track[]): void;
  abstract onPacket(packet: Packet): void;

  /** Ends the playlists (EXT-X-ENDLIST): the open segment becomes the last one, later packets are dropped. Idempotent. */
  concludeHlsLive(): void {
    if (this.#closed || this.#concluded) return;
    this.finishSegments();
    this.#concluded = true;
    this.sendConclusion();
  }

  close(_reason: CloseReason): void {
    if (this.#closed) return;
    // Viewers lose the open segment, but dumps get it.
    if (this.isObserved && !this.#concluded) this.finishSegments();
    this.#closed = true;
    for (const observer of [...this.#observers]) observer.streamEnded();
    this.rewinding?.archive.close();
    this.feed.close();
    this.#onClose?.(this);
  }

  /** An observer follows the segments. */
  protected get isObserved(): boolean {
    return this.#observers.size > 0;
  }

  /** Windows that share the memory. */
  protected abstract get windowCount(): number;

  /** Updates that lead a thread which starts late to the present. */
  protected abstract snapshot(): readonly unknown[];

  /** Multivariant playlists as they are now, without paths and queries, by file name. */
  protected abstract multivariantTexts(): [name: string, text: string][];

  /** The open segment becomes the last one. */
  protected abstract finishSegments(): void;

  /** Tells views that nothing more is appended. */
  protected abstract sendConclusion(): void;

  /** Copies `chunks` into shared memory. */
  protected store(chunks: readonly Uint8Array[]): readonly Span[] {
    return this.#budget.store(chunks);
  }

  /** Tracks and playlists are known; reported once. */
  protected started(): void {
    this.#onStart?.(this);
    this.#onStart = undefined;
  }

  protected tellObservers(segment: ObservedSegment): void {
    for (const observer of [...this.#observers]) observer.segmentFinished(segment);
  }
}

function openArchive(
  { stream, settings: { dVR } }: Pick<PackagedStreamOptions<PackagingSettings>, 'stream' | 'settings'>,
  storage: DvrStorage,
  run: string,
): Rewinding | null {
  if (dVR?.enable !== true) return null;
  const folder = storage.open(dVR.tempStoragePath, [internalAppName(stream.vhost, stream.app), stream.name], run);
  return { archive: new DvrArchive(folder), maxDuration: dVR.maxDuration };
}
