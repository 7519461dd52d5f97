/** One outbound stream packaged as HLS over MPEG-TS: makes segments and keeps the delivery threads informed. */
import type { CloseReason } from '../../../../core/ingest.ts';
import { PublisherKind } from '../../../../core/kinds.ts';
import { SUBTITLE_VARIANT } from '../../../../core/subtitle-injector.ts';
import type { Packet } from '../../../../media/packet.ts';
import { EventFormat, isMarker } from '../../../../media/timed-event.ts';
import type { SubtitleTrack, Track } from '../../../../media/track.ts';
import { EXTRA_SEGMENTS, type HlsSettings } from '../../wire/settings.ts';
import {
  mediaPlaylistName,
  multivariantText,
  PLAYLIST_VERSION,
  SERVICES_VERSION,
  segmentName,
  subtitleVariant,
  URI_MARK,
} from '../../wire/ts/multivariant-text.ts';
import type { HlsMultivariant, HlsSegment, HlsUpdate } from '../../wire/ts/update.ts';
import { hlsViewSettings } from '../../wire/view-settings.ts';
import { CaptionGroups, CaptionWatch } from '../caption-watch.ts';
import { PackagedStream, type PackagedStreamOptions, PLAYLIST_SUFFIX } from '../packaged-stream.ts';
import type { ObservedSegment } from '../segment-observer.ts';
import { subtitleRendition } from '../subtitle-rendition.ts';
import { SlotSchedule } from './slot-schedule.ts';
import { streamInfAttributes } from './stream-inf.ts';
import { SubtitleSegments } from './subtitle-segments.ts';
import { type FinishedSegment, TsSegmenter, type TsSegmentSink } from './ts-segmenter.ts';
import { VariantSegments, type VariantSegmentsContext, type VariantWindowOptions } from './variant-segments.ts';
import { type HlsPlaylistVariants, type HlsVariant, selectVariants } from './variants.ts';

interface PackagedVariant {
  readonly segmenter: TsSegmenter;
  readonly kept: VariantSegments;
}

/** One stream inside the HLS publisher. It serves whole segments, and requests never wait for them. */
export class HlsStream extends PackagedStream<HlsSettings> {
  readonly #window: VariantWindowOptions;
  readonly #schedule: SlotSchedule;
  /** Number of the first segment of a variant that begins in a slot. */
  readonly #numberOf: (slot: number) => number;
  readonly #sink: TsSegmentSink;
  readonly #context: VariantSegmentsContext;
  readonly #captions = new CaptionWatch();
  readonly #variants = new Map<string, PackagedVariant>();
  /** By variant. */
  readonly #subtitles = new Map<string, SubtitleSegments>();
  #playlists: readonly HlsPlaylistVariants[] = [];
  #isStarted = false;

  constructor(options: PackagedStreamOptions<HlsSettings>) {
    const { stream, settings } = options;
    super(options, { kind: PublisherKind.HLS, viewSettings: hlsViewSettings(settings), run: `hls-${stream.id}` });
    this.#window = { memoryCount: settings.segmentCount + EXTRA_SEGMENTS, rewinding: this.rewinding };
    const { segmentDuration, serverTimeBasedSegmentNumbering = false } = settings;
    this.#schedule = new SlotSchedule(segmentDuration * 1000, () => stream.startedAt);
    this.#numberOf = (slot) => (serverTimeBasedSegmentNumbering ? Math.floor(stream.startedAt / 1000 / segmentDuration) + slot : 0);
    this.#sink = {
      store: (chunks) => this.store(chunks),
      finished: (variantId, segment) => this.#keep(variantId, segment),
    };
    this.#context = { ...this.memory, update: (update) => this.feed.update(update) };
  }

  /** Packets of any variant that could not be muxed because they break their format. */
  get brokenPackets(): number {
    let count = 0;
    for (const { segmenter } of this.#variants.values()) count += segmenter.brokenPackets;
    return count;
  }

  override get playlistNames(): readonly string[] {
    return this.#playlists.map(({ fileName }) => fileName + PLAYLIST_SUFFIX);
  }

  /** None, because each variant numbers its own segments. */
  override newestSegments(): ObservedSegment[] {
    return [];
  }

  override onTracks(tracks: readonly Track[]): void {
    if (this.closed || this.concluded) return;
    this.#captions.keep(tracks);
    this.#playlists = selectVariants(this.stream.playlists, tracks);
    const wanted = new Map(this.#playlists.flatMap(({ variants }) => variants).map((variant) => [variant.id, variant]));
    for (const [id, { segmenter, kept }] of this.#variants) {
      if (wanted.has(id)) continue;
      segmenter.finish(); // its stored bytes are released with the rest
      kept.window.clear();
      this.#variants.delete(id);
    }
    this.#followSubtitles(wanted.size > 0 ? tracks.filter((track) => track.type === 'subtitle') : []);
    const anyVideo = [...wanted.values()].some(({ video }) => video !== null);
    for (const variant of wanted.values()) this.#package(variant, variant.video !== null || !anyVideo);
    this.#isStarted = true;
    this.feed.update(this.#playlistsUpdate());
    this.started();
  }

  override onPacket(packet: Packet): void {
    if (this.closed || this.concluded) return;
    if (this.#captions.look(packet) && this.#isStarted) this.feed.update(this.#playlistsUpdate());
    const { event } = packet;
    if (event !== undefined && isMarker(event)) this.#schedule.markers.push(packet);
    if (packet.track.type === 'subtitle') this.#subtitles.get(subtitleVariant(packet.track.id))?.push(packet);
    else if (event?.format === EventFormat.CONCLUSION) this.concludeHlsLive();
    else for (const { segmenter } of this.#variants.values()) segmenter.push(packet);
  }

  override close(reason: CloseReason): void {
    super.close(reason);
    this.#variants.clear();
    this.#subtitles.clear();
  }

  protected override get windowCount(): number {
    return this.#variants.size + this.#subtitles.size;
  }

  protected override snapshot(): readonly HlsUpdate[] {
    if (!this.#isStarted) return [];
    const updates = [this.#playlistsUpdate()];
    for (const { kept } of [...this.#variants.values(), ...this.#subtitles.values()]) updates.push(...kept.snapshot());
    if (this.concluded) updates.push({ type: 'conclude' });
    return updates;
  }

  protected override multivariantTexts(): [name: string, text: string][] {
    return this.#multivariants().map((playlist) => [playlist.fileName + PLAYLIST_SUFFIX, multivariantText(playlist, '')]);
  }

  protected override finishSegments(): void {
    for (const { segmenter } of this.#variants.values()) segmenter.finish();
  }

  protected override sendConclusion(): void {
    this.feed.update({ type: 'conclude' } satisfies HlsUpdate);
  }

  #keep(variantId: string, made: FinishedSegment): void {
    const variant = this.#variants.get(variantId);
    if (variant === undefined) return;
    this.#add(variantId, variant.kept, made);
    if (variantId === this.#leadVariant) {
      for (const [id, subtitles] of this.#subtitles)
        this.#add(
          id,
          subtitles.kept,
          subtitles.beside(made, (chunks) => this.store(chunks)),
        );
    }
    // Measured bandwidths change all the time: once per segment of the first variant is often enough.
    if (variant === this.#variants.values().next().value) this.feed.update(this.#playlistsUpdate());
  }

  #add(variantId: string, kept: VariantSegments, { start, ...rest }: FinishedSegment): void {
    const startTime = this.#schedule.dates.epochAt(start, rest.discontinuity) + start;
    const segment = { ...rest, startTime, path: null };
    if (this.isObserved) this.tellObservers(this.#observed(variantId, segment));
    kept.add(segment);
  }

  /** The first variant with video, whose segments are also those of the subtitles; without video the first. */
  get #leadVariant(): string | undefined {
    let first: string | undefined;
    for (const [id, { segmenter }] of this.#variants) {
      if (segmenter.variant.video !== null) return id;
      first ??= id;
    }
    return first;
  }

  #followSubtitles(tracks: readonly SubtitleTrack[]): void {
    for (const [id, { track, kept }] of this.#subtitles) {
      if (tracks.some((candidate) => candidate.id === track.id)) continue;
      kept.window.clear();
      this.#subtitles.delete(id);
    }
    for (const track of tracks) {
      const id = subtitleVariant(track.id);
      const known = this.#subtitles.get(id);
      if (known === undefined) this.#subtitles.set(id, new SubtitleSegments(track, new VariantSegments(id, this.#window, this.#context)));
      else known.track = track;
    }
  }

  #observed(variantId: string, { number, duration, startTime, discontinuity, tags, spans }: HlsSegment): ObservedSegment {
    return {
      playlist: mediaPlaylistName(variantId),
      uri: segmentName(variantId, number),
      init: null,
      read: () => Buffer.concat(this.feed.read(spans)),
      ...{ number, duration, startTime, discontinuity, tags },
    };
  }

  #package(variant: HlsVariant, leads: boolean): void {
    const known = this.#variants.get(variant.id);
    if (known !== undefined) {
      known.segmenter.change(variant, leads);
      return;
    }
    this.#variants.set(variant.id, {
      segmenter: new TsSegmenter({ variant, leads, schedule: this.#schedule, numberOf: this.#numberOf, sink: this.#sink }),
      kept: new VariantSegments(variant.id, this.#window, this.#context),
    });
  }

  #playlistsUpdate(): HlsUpdate {
    return { type: 'playlists', playlists: this.#multivariants(), variants: [...this.#variants.keys(), ...this.#subtitles.keys()] };
  }

  #multivariants(): HlsMultivariant[] {
    const figures = this.stream.figures.bind(this.stream);
    return this.#playlists.map(({ fileName, variants, enableSubtitles }) => {
      const offered = enableSubtitles ? [...this.#subtitles] : [];
      const subtitles = offered.length > 0 ? SUBTITLE_VARIANT : null;
      const captions = new CaptionGroups();
      return {
        fileName,
        renditions: variants.map((variant) => {
          const groups = { subtitles, captions: captions.idOf(this.#captions.of(variant.video)) };
          return { variant: variant.id, attributes: streamInfAttributes(variant, figures, groups) };
        }),
        subtitles: offered.map(([variant, { track }]) => ({ variant, line: subtitleRendition(track, URI_MARK) })),
        captions: captions.text,
        version: captions.hasServices ? SERVICES_VERSION : PLAYLIST_VERSION,
      };
    });
  }
}
