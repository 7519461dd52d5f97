/** One outbound stream packaged as HLS over MPEG-TS: makes segments and keeps the egress threads informed. */
import type { CloseReason } from '../../../../core/ingest.ts';
import { PublisherKind } from '../../../../core/kinds.ts';
import type { PublishableStream, PublisherStream } from '../../../../core/publishing.ts';
import { MemoryBudget } from '../../../../delivery/outlet/memory-budget.ts';
import type { EgressPort, Outlet } from '../../../../delivery/outlet/messages.ts';
import type { Packet } from '../../../../media/packet.ts';
import type { Track } from '../../../../media/track.ts';
import { DvrArchive } from '../../dvr/dvr-archive.ts';
import type { DvrStorage } from '../../dvr/dvr-storage.ts';
import { mediaPlaylistName, multivariantText, segmentName } from '../../view/ts/playlist-text.ts';
import { type HlsSettings, viewSettings } from '../../wire/ts/settings.ts';
import type { HlsMultivariant, HlsSegment, HlsUpdate } from '../../wire/ts/updates.ts';
import type { ObservedSegment, SegmentObserver, SegmentSource } from '../segment-observer.ts';
import { CutSchedule } from './cut-schedule.ts';
import { type FinishedSegment, Segmenter, type SegmentSink } from './segmenter.ts';
import { streamInfAttributes } from './stream-inf.ts';
import { VariantSegments, type VariantSegmentsContext, type VariantWindowOptions } from './variant-segments.ts';
import { type HlsPlaylistVariants, type HlsVariant, selectVariants } from './variants.ts';

/** Segments kept behind those in the playlist, for players that hold an older one. */
const KEPT_BEHIND = 3;
const PLAYLIST_SUFFIX = '.m3u8';

interface PackagedVariant {
  readonly segmenter: Segmenter;
  readonly kept: VariantSegments;
}

/** What streams of the publisher share. */
export interface HlsStreamContext {
  readonly egress: EgressPort;
  readonly storage: DvrStorage;
  /** Bytes of shared memory; absent: `MAX_OUTLET_BYTES`. */
  readonly memoryBytes?: number;
  /** The stream has tracks and playlists. */
  readonly onStart?: (stream: HlsStream) => void;
  /** The stream has ended. */
  readonly onClose?: (stream: HlsStream) => void;
}

/**
 * Made by the publisher, closed by the core: that ends its outlet and its DVR files and tells its observers. A second `close` has no
 * effect.
 */
export class HlsStream implements PublisherStream, SegmentSource {
  readonly #stream: PublishableStream;
  readonly #archive: DvrArchive | null;
  readonly #window: VariantWindowOptions;
  readonly #outlet: Outlet;
  readonly #budget: MemoryBudget;
  readonly #schedule: CutSchedule;
  readonly #sink: SegmentSink;
  readonly #context: VariantSegmentsContext;
  readonly #variants = new Map<string, PackagedVariant>();
  readonly #observers = new Set<SegmentObserver>();
  readonly #onStart: ((stream: HlsStream) => void) | undefined;
  readonly #onClose: ((stream: HlsStream) => void) | undefined;
  #playlists: readonly HlsPlaylistVariants[] = [];
  #started = false;
  #concluded = false;
  #closed = false;

  constructor(stream: PublishableStream, settings: HlsSettings, { egress, storage, memoryBytes, onStart, onClose }: HlsStreamContext) {
    this.#onStart = onStart;
    this.#onClose = onClose;
    const { segmentDuration, segmentCount, crossDomains, dVR } = settings;
    this.#stream = stream;
    const address = [`#${stream.vhost}#${stream.app}`, stream.name];
    this.#archive = dVR?.enable === true ? new DvrArchive(storage.open(dVR.tempStoragePath, address, `hls-${stream.id}`)) : null;
    const rewinding = this.#archive === null ? null : { archive: this.#archive, maxDuration: dVR?.maxDuration ?? 0 };
    this.#window = { memoryCount: segmentCount + KEPT_BEHIND, rewinding };
    this.#schedule = new CutSchedule(segmentDuration * 1000);
    this.#sink = {
      store: (chunks) => this.#budget.store(chunks),
      finished: (variantId, segment) => this.#keep(variantId, segment),
    };
    this.#context = {
      read: (spans) => this.#outlet.read(spans),
      release: (spans) => this.#budget.release(spans),
      asksBack: (spans) => this.#budget.asksBack(this.#variants.size, spans),
      update: (update) => this.#outlet.update(update),
    };
    this.#outlet = egress.openOutlet({
      kind: PublisherKind.HLS,
      address: { vhost: stream.vhost, app: stream.app, stream: stream.name },
      crossDomains: crossDomains ?? null,
      settings: viewSettings(settings),
      bytesPerSecond: Math.round(stream.tracks.reduce((sum, { bitrateConf }) => sum + bitrateConf, 0) / 8),
      snapshot: () => this.#snapshot(),
      openSession: (request) => stream.openSession({ ...request, kind: PublisherKind.HLS }),
      onBytesSent: (bytes) => stream.meter.countBytes(bytes),
    });
    this.#budget = new MemoryBudget(this.#outlet, memoryBytes);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** What is served are whole segments, for which nobody waits; what is dumped should outlive a kill. */
  get attended(): boolean {
    return this.#observers.size > 0;
  }

  /** True once `concludeHlsLive` was called. */
  get concluded(): boolean {
    return this.#concluded;
  }

  /** Packets of any variant that could not be muxed because they break their format. */
  get brokenPackets(): number {
    let count = 0;
    for (const { segmenter } of this.#variants.values()) count += segmenter.brokenPackets;
    return count;
  }

  /** Internal path, `#<vhost>#<app>/<stream>`. */
  get path(): string {
    const { vhost, app, name } = this.#stream;
    return `#${vhost}#${app}/${name}`;
  }

  get playlistNames(): readonly string[] {
    return this.#playlists.map(({ fileName }) => fileName + PLAYLIST_SUFFIX);
  }

  plainMultivariants(names: readonly string[]): [name: string, text: string][] {
    return this.#multivariants()
      .map((playlist): [string, string] => [playlist.fileName + PLAYLIST_SUFFIX, multivariantText(playlist, '')])
      .filter(([name]) => names.length === 0 || names.includes(name));
  }

  observe(observer: SegmentObserver): void {
    if (this.#closed) {
      observer.streamEnded();
      return;
    }
    this.#observers.add(observer);
    this.#stream.attend();
  }

  unobserve(observer: SegmentObserver): void {
    this.#observers.delete(observer);
  }

  /** None: variants count apart. */
  newestSegments(): ObservedSegment[] {
    return [];
  }

  /** Settles when the files of the DVR are written or removed as far as asked for. */
  get settled(): Promise<void> {
    return this.#archive?.settled ?? Promise.resolve();
  }

  onTracks(tracks: readonly Track[]): void {
    if (this.#closed || this.#concluded) return;
    this.#playlists = selectVariants(this.#stream.playlists, tracks);
    const wanted = new Map(this.#playlists.flatMap(({ variants }) => variants).map((variant) => [variant.id, variant]));
    for (const [id, { segmenter, kept }] of this.#variants) {
      if (wanted.has(id)) continue;
      segmenter.finish(); // what it has stored so far is released with the rest
      kept.window.clear();
      this.#variants.delete(id);
    }
    const anyVideo = [...wanted.values()].some(({ video }) => video !== null);
    for (const variant of wanted.values()) this.#package(variant, variant.video !== null || !anyVideo);
    const isFirst = !this.#started;
    this.#started = true;
    this.#outlet.update(this.#playlistsUpdate());
    if (isFirst) this.#onStart?.(this);
  }

  onPacket(packet: Packet): void {
    if (this.#closed || this.#concluded) return;
    for (const { segmenter } of this.#variants.values()) segmenter.push(packet);
  }

  /** Ends the playlists: what is open becomes the last segment, later packets are dropped. Idempotent. */
  concludeHlsLive(): void {
    if (this.#closed || this.#concluded) return;
    for (const { segmenter } of this.#variants.values()) segmenter.finish();
    this.#concluded = true;
    this.#outlet.update({ type: 'conclude' } satisfies HlsUpdate);
  }

  close(_reason: CloseReason): void {
    if (this.#closed) return;
    // Viewers lose what is open; who keeps the stream does not.
    if (this.#observers.size > 0 && !this.#concluded) for (const { segmenter } of this.#variants.values()) segmenter.finish();
    this.#closed = true;
    for (const observer of [...this.#observers]) observer.streamEnded();
    this.#variants.clear();
    this.#archive?.close();
    this.#outlet.close();
    this.#onClose?.(this);
  }

  #keep(variantId: string, made: FinishedSegment): void {
    const variant = this.#variants.get(variantId);
    if (variant === undefined) return;
    const { start, ...rest } = made;
    const segment = { ...rest, wallClock: this.#stream.startedAt + start, path: null };
    if (this.#observers.size > 0) this.#tellObservers(variantId, segment);
    variant.kept.add(segment);
    // Measured bandwidths change all the time: once per segment of the first variant is often enough.
    if (variant === this.#variants.values().next().value) this.#outlet.update(this.#playlistsUpdate());
  }

  #tellObservers(variantId: string, { number, duration, wallClock, discontinuity, spans }: HlsSegment): void {
    const observed = {
      playlist: mediaPlaylistName(variantId),
      uri: segmentName(variantId, number),
      init: null,
      startTime: wallClock,
      read: () => Buffer.concat(this.#outlet.read(spans)),
      ...{ number, duration, discontinuity },
    };
    for (const observer of [...this.#observers]) observer.segmentFinished(observed);
  }

  #package(variant: HlsVariant, leads: boolean): void {
    const known = this.#variants.get(variant.id);
    if (known !== undefined) {
      known.segmenter.change(variant, leads);
      return;
    }
    this.#variants.set(variant.id, {
      segmenter: new Segmenter({ variant, leads, schedule: this.#schedule, sink: this.#sink }),
      kept: new VariantSegments(variant.id, this.#window, this.#context),
    });
  }

  #playlistsUpdate(): HlsUpdate {
    return { type: 'playlists', playlists: this.#multivariants(), variants: [...this.#variants.keys()] };
  }

  #multivariants(): HlsMultivariant[] {
    const figures = this.#stream.figures.bind(this.#stream);
    return this.#playlists.map(({ fileName, variants }) => ({
      fileName,
      renditions: variants.map((variant) => ({ variant: variant.id, attributes: streamInfAttributes(variant, figures) })),
    }));
  }

  /** What a thread that starts late must know. */
  #snapshot(): HlsUpdate[] {
    if (!this.#started) return [];
    const updates = [this.#playlistsUpdate()];
    for (const { kept } of this.#variants.values()) updates.push(...kept.snapshot());
    if (this.#concluded) updates.push({ type: 'conclude' });
    return updates;
  }
}
