/** One stream inside the LL-HLS publisher: packages its tracks and keeps the delivery threads informed. */
import { BoxWriter } from '../../../../containers/isobmff/box-writer.ts';
import { PublisherKind } from '../../../../core/kinds.ts';
import { addressOf } from '../../../../core/stream-address.ts';
import { Urgency } from '../../../../core/urgency.ts';
import type { Packet } from '../../../../media/packet.ts';
import type { SegmentFacts, SegmentMark } from '../../../../media/segment-mark.ts';
import { toMilliseconds } from '../../../../media/timebase.ts';
import { EventFormat, isMarker } from '../../../../media/timed-event.ts';
import type { Track } from '../../../../media/track.ts';
import { ResourceNames } from '../../wire/fmp4/resource-name.ts';
import { type SegmentModel, StreamModel, type TrackModel } from '../../wire/fmp4/stream-model.ts';
import { type LlhlsUpdate, type MultivariantText, TAIL_MARK } from '../../wire/fmp4/update.ts';
import { EXTRA_SEGMENTS, HOLD_BACK_PARTS, type LlhlsSettings } from '../../wire/settings.ts';
import { llhlsViewSettings } from '../../wire/view-settings.ts';
import { CaptionWatch } from '../caption-watch.ts';
import { PackagedStream, type PackagedStreamOptions, PLAYLIST_SUFFIX } from '../packaged-stream.ts';
import type { ObservedSegment, SegmentSource } from '../segment-observer.ts';
import { SegmentWindow } from '../segment-window.ts';
import { CutSchedule } from './cut-schedule.ts';
import { renderMultivariant } from './multivariant-text.ts';
import type { PartTimeliness, StreamTimeliness } from './part-timeliness.ts';
import { canOpenPlaylists } from './readiness.ts';
import { fixedRunMark, randomRunMark } from './run-mark.ts';
import { SegmentLimits } from './segment-limits.ts';
import { SegmentNumbering } from './segment-numbering.ts';
import { SubtitlePackager } from './subtitle-packager.ts';
import { TimedMetadata } from './timed-metadata.ts';
import { TrackAligner } from './track-aligner.ts';
import { isServableInFmp4, type PackagingContext, TrackPackager } from './track-packager.ts';
import { segmentSpans, TrackSegments, type TrackSegmentsContext } from './track-segments.ts';

/** Options of a packaged stream, and an optional observer of part times. */
export interface LlhlsStreamOptions extends PackagedStreamOptions<LlhlsSettings> {
  readonly timeliness?: PartTimeliness;
}

/** One stream inside the LL-HLS publisher. */
export class LlhlsStream extends PackagedStream<LlhlsSettings> {
  readonly #runMark: string;
  readonly #timeliness: StreamTimeliness | null;
  readonly #model = new StreamModel();
  #limits: SegmentLimits;
  readonly #metadata = new TimedMetadata();
  readonly #schedule: CutSchedule;
  readonly #aligner = new TrackAligner();
  readonly #captions = new CaptionWatch();
  /** By track id. */
  readonly #subtitles = new Map<number, SubtitlePackager>();
  /** Complete segments of a track in memory that playlists may list. */
  readonly #listedCount: number;
  readonly #segmentsContext: TrackSegmentsContext;
  /** By track id. */
  readonly #windows = new Map<number, SegmentWindow<SegmentModel>>();
  #context: PackagingContext | null = null;
  #tracks: readonly Track[] = [];
  #pending: LlhlsUpdate[] = [];
  #independentSegments = true;
  #multivariantStale = false;
  #segmentBegan = false;
  /** Decisions of the server that numbers the stream; null: this server. */
  #facts: SegmentFacts | null = null;
  readonly #numbering: SegmentNumbering;

  constructor(options: LlhlsStreamOptions) {
    const { stream, settings, timeliness } = options;
    const runMark = settings.originMode ? fixedRunMark(stream.name) : randomRunMark();
    const view = llhlsViewSettings(settings, runMark);
    const timed = timeliness?.open(addressOf(stream)) ?? null;
    const onClose = (closed: SegmentSource): void => {
      if (timed !== null) timeliness?.close(timed);
      options.onClose?.(closed);
    };
    super({ ...options, onClose }, { kind: PublisherKind.LLHLS, viewSettings: view, run: runMark });
    this.#timeliness = timed;
    this.#runMark = runMark;
    // Origins that number by the wall clock must cut alike from the start.
    const first = settings.serverTimeBasedSegmentNumbering ? settings.segmentDuration : HOLD_BACK_PARTS * settings.chunkDuration;
    this.#limits = new SegmentLimits(settings.segmentDuration, first);
    this.#schedule = new CutSchedule(() => stream.startedAt);
    stream.marks.follow(() => this.#schedule.leaveGuide());
    this.#numbering = new SegmentNumbering(this.#schedule);
    this.#listedCount = view.segmentCount + EXTRA_SEGMENTS - 1;
    this.#segmentsContext = { ...this.memory, emit: (update) => this.#emit(update), flush: () => this.#send() };
  }

  /** Viewers may wait for the next part, and dumps should lose little to a kill. */
  override get urgency(): Urgency {
    return this.feed.watched ? Urgency.LOW_LATENCY : super.urgency;
  }

  /** Arrival time of the frame that completes the next part of any track; a dump needs every packet. */
  get neededAt(): number {
    const next = this.isObserved || !this.#model.playable ? Number.NEGATIVE_INFINITY : this.#aligner.nextListed;
    return Number.isFinite(next) ? this.stream.estimatedStart() + next : Number.NEGATIVE_INFINITY;
  }

  /** The served model, for statistics and tests. */
  get model(): StreamModel {
    return this.#model;
  }

  /** Part of the names of all resources. */
  get runMark(): string {
    return this.#runMark;
  }

  override get playlistNames(): readonly string[] {
    return this.stream.playlists.map(({ fileName }) => fileName + PLAYLIST_SUFFIX);
  }

  /** The bytes of a segment that is in memory. */
  copyOf(segment: SegmentModel): Buffer {
    return Buffer.concat(this.feed.read(segmentSpans(segment)));
  }

  override newestSegments(): ObservedSegment[] {
    const tracks = [...this.#model.tracks.values()].filter(({ completeCount }) => completeCount > 0);
    if (tracks.length === 0) return [];
    const lasts = tracks.map((track) => track.segments[track.completeCount - 1]?.msn ?? 0);
    // Segments in DVR files are not searched.
    const oldest = tracks.map((track) => track.segments.find(({ path }) => path === null)?.msn ?? 0);
    const first = Math.max(Math.min(...lasts), ...oldest);
    return tracks.flatMap((track) => {
      const complete = track.segments.slice(0, track.completeCount).filter(({ msn }) => msn >= first);
      return complete.map((segment) => this.#observed(track, segment));
    });
  }

  override onTracks(tracks: readonly Track[]): void {
    if (this.closed) return;
    this.#tracks = tracks;
    this.#captions.keep(tracks);
    this.#removeLostPackagers();
    this.#followSubtitles();
    this.#addMissingPackagers();
    this.#refreshMultivariants();
    this.#send();
    this.started();
  }

  override onPacket(packet: Packet): void {
    if (this.closed || this.concluded) return;
    if (packet.track.type === 'data') {
      this.#takeEvent(packet);
      return;
    }
    if (packet.track.type === 'subtitle') {
      this.#subtitles.get(packet.track.id)?.push(packet);
      return;
    }
    if (!isServableInFmp4(packet.track)) return;
    if (packet.mark !== undefined) this.#follow(packet.mark);
    this.#context ??= this.#createContext(packet);
    if (this.#aligner.get(packet.track.id) === null) this.#addMissingPackagers();
    if (this.#captions.look(packet)) this.#multivariantStale = true;
    this.#aligner.push(packet);
    this.#afterPackets();
    this.#tellMark(packet);
  }

  /** Another server numbers the stream. */
  #follow({ discontinuities, facts }: SegmentMark): void {
    this.#facts = facts;
    if (this.#context !== null) return;
    this.#limits = new SegmentLimits(facts.segmentDuration, facts.segmentDuration);
    this.#numbering.discontinuities = discontinuities;
  }

  /** Tells other servers how to number segments as this server does. */
  #tellMark(packet: Packet): void {
    const { leader } = this.#aligner;
    if (leader === null || leader.track.id !== packet.track.id) return;
    const begun = this.#numbering.takeBegun();
    if (begun === null || !this.stream.marks.wanted) return;
    const { targetDuration, partHoldBack } = this.#model;
    this.stream.marks.tell(
      this.#numbering.markOf(begun, leader.earliestCut, {
        segmentDuration: this.#limits.segmentDuration,
        chunkDuration: this.#facts?.chunkDuration ?? this.settings.chunkDuration,
        ...{ targetDuration, partHoldBack, offset: this.#context?.offset ?? 0 },
        tracks: this.#aligner.packagers().map(({ decisions }) => decisions),
      }),
      packet,
    );
  }

  #takeEvent(packet: Packet): void {
    const { event, pts, data, track } = packet;
    if (event?.format === EventFormat.CONCLUSION) this.concludeHlsLive();
    else if (event !== undefined && isMarker(event)) this.#schedule.markers.push(packet);
    else if (event === undefined || event.format === EventFormat.ID3)
      this.#metadata.push(toMilliseconds(pts, track.timebase), data, event?.target ?? 'leader');
  }

  protected override get windowCount(): number {
    return this.#model.tracks.size;
  }

  protected override snapshot(): readonly unknown[] {
    return [this.#model.snapshot()];
  }

  protected override multivariantTexts(): [name: string, text: string][] {
    const source = this.#multivariantSource();
    return this.stream.playlists.flatMap((playlist): [string, string][] => {
      const rendered = renderMultivariant({ ...playlist, options: { ...playlist.options, hlsChunklistPathDepth: 0 } }, source);
      return rendered === null ? [] : [[playlist.fileName + PLAYLIST_SUFFIX, rendered.text.replaceAll(TAIL_MARK, '')]];
    });
  }

  protected override finishSegments(): void {
    this.#aligner.flush();
  }

  protected override sendConclusion(): void {
    this.#startPlayback();
    this.#emit({ type: 'conclude' });
    this.#send();
  }

  #openWindow(trackId: number): void {
    const track = this.#model.tracks.get(trackId);
    if (track === undefined) return;
    const segments = new TrackSegments(track, this.#segmentsContext);
    this.#windows.set(trackId, new SegmentWindow(segments, this.#listedCount, this.rewinding));
  }

  #createContext(first: Packet): PackagingContext {
    const { segmentDuration, serverTimeBasedSegmentNumbering, chunkDuration } = this.settings;
    const facts = this.#facts;
    if (serverTimeBasedSegmentNumbering) this.#schedule.firstMsn = Math.floor(this.stream.startedAt / 1000 / segmentDuration);
    // With B-frames, decoding times may begin below zero, which tfdt cannot express: all times are raised by whole seconds.
    const earliest = Math.min(0, toMilliseconds(first.dts, first.track.timebase));
    return {
      chunkDuration: facts?.chunkDuration ?? chunkDuration,
      decided: (trackId) => this.#facts?.tracks.find(({ id }) => id === trackId),
      discontinuities: () => (facts === null ? 0 : this.#numbering.discontinuities),
      schedule: this.#schedule,
      limits: this.#limits,
      metadata: this.#metadata,
      offset: facts?.offset ?? Math.ceil(-earliest / 1000) * 1000,
      writer: new BoxWriter(),
      store: (chunks) => this.store(chunks),
      emit: (update) => this.#emit(update),
      began: (trackId, segment) => {
        if (trackId === this.#aligner.leader?.track.id) this.#numbering.began(segment);
      },
      dependentSegment: () => {
        if (this.#independentSegments) this.#multivariantStale = true;
        this.#independentSegments = false;
      },
    };
  }

  #removeLostPackagers(): void {
    for (const packager of this.#aligner.packagers()) {
      const { track } = packager;
      if (this.#has(track.id)) continue;
      packager.listRest();
      this.#aligner.remove(track.id);
      this.#forget(track.id);
    }
    for (const id of this.#subtitles.keys()) {
      if (this.#has(id)) continue;
      this.#subtitles.delete(id);
      this.#forget(id);
    }
  }

  #has(trackId: number): boolean {
    return this.#tracks.some(({ id }) => id === trackId);
  }

  #forget(trackId: number): void {
    this.#emit({ type: 'track-gone', trackId });
    this.#windows.get(trackId)?.clear();
    this.#windows.delete(trackId);
  }

  #followSubtitles(): void {
    for (const track of this.#tracks) {
      if (track.type !== 'subtitle') continue;
      const known = this.#subtitles.get(track.id);
      if (known !== undefined) {
        known.track = track;
        continue;
      }
      const packager = new SubtitlePackager(track, {
        schedule: this.#schedule,
        offset: () => this.#context?.offset ?? 0,
        store: (chunks) => this.store(chunks),
        emit: (update) => this.#emit(update),
      });
      this.#subtitles.set(track.id, packager);
      packager.setPartTarget(this.#model.tracks.get(this.#aligner.leader?.track.id ?? -1)?.partTarget ?? 0);
    }
  }

  /** Packagers begin with the first packet of any track: only then is the time base of the stream known. */
  #addMissingPackagers(): void {
    const context = this.#context;
    if (context === null) return;
    for (const track of this.#tracks) {
      if (isServableInFmp4(track) && this.#aligner.get(track.id) === null) this.#aligner.add(new TrackPackager(track, context));
    }
  }

  #afterPackets(): void {
    if (
      !this.#model.playable &&
      this.#facts?.targetDuration !== 0 &&
      canOpenPlaylists(this.#aligner.packagers().map((packager) => packager.progress))
    )
      this.#startPlayback();
    if (this.#pending.length === 0) return;
    if (this.#segmentBegan) this.#aligner.passPauses();
    this.#segmentBegan = false;
    if (this.#multivariantStale && this.#model.playable) this.#refreshMultivariants();
    this.#send();
  }

  #startPlayback(): void {
    if (this.#model.playable) return;
    const packagers = this.#aligner.packagers();
    const longest = Math.max(0, ...packagers.map((packager) => packager.longestSegment));
    const decided = this.#facts?.targetDuration ?? 0;
    const targetDuration = decided > 0 ? this.#limits.take(decided) : this.#limits.decide(this.#aligner.leader?.gop ?? null, longest);
    const partTarget = Math.max(0, ...[...this.#model.tracks.values()].map((track) => track.partTarget));
    const own = Math.max(this.settings.partHoldBack, HOLD_BACK_PARTS * partTarget);
    const partHoldBack = this.#facts?.partHoldBack || own;
    this.#emit({ type: 'playable', targetDuration, partHoldBack });
    this.#refreshMultivariants();
  }

  /** Renders the multivariant playlists, and sends them if they differ. */
  #refreshMultivariants(): void {
    this.#multivariantStale = false;
    if (this.#tracks.length === 0) return;
    const known = this.#model.multivariants;
    const playlists = this.stream.playlists.map((playlist) => renderMultivariant(playlist, this.#multivariantSource()));
    const served = playlists.filter((playlist): playlist is MultivariantText => playlist !== null);
    const same =
      this.#model.started &&
      known.size === served.length &&
      served.every((playlist) => known.get(playlist.fileName)?.text === playlist.text);
    if (!same) this.#emit({ type: 'multivariant', playlists: served });
  }

  #multivariantSource() {
    const { app, name } = this.stream;
    return {
      app,
      stream: name,
      runMark: this.#runMark,
      // A track without media yet would make players wait for it.
      tracks: this.#tracks.filter((track) => !this.#model.playable || (this.#model.tracks.get(track.id)?.completeCount ?? 0) > 0),
      independentSegments: this.#independentSegments,
      bandwidth: (track: Track) => {
        const peak = this.#aligner.get(track.id)?.peakBitrate ?? 0;
        return Math.max(track.bitrateConf, this.stream.figures(track.id).bitrateAvg, peak);
      },
      captions: (track: Track) => this.#captions.of(track),
      frameRate: (track: Track) => Math.round(this.stream.figures(track.id).framerateAvg),
    };
  }

  #emit(update: LlhlsUpdate): void {
    this.#model.apply(update);
    this.#pending.push(update);
    // A track that began late may be offered now; bit rates of whole segments have become known.
    if (update.type === 'part-target' || update.type === 'segment-close') this.#multivariantStale = true;
    if (update.type === 'segment-open') this.#segmentBegan = true;
    this.#time(update);
    if (update.type === 'track') this.#openWindow(update.trackId);
    if (update.type === 'segment-close') this.#segmentClosed(update.trackId);
    if (this.#subtitles.size === 0 || !('trackId' in update) || update.trackId !== this.#aligner.leader?.track.id) return;
    for (const packager of this.#subtitles.values()) packager.follow(update);
  }

  /** Notes each part, and tracks of which no part is expected. */
  #time(update: LlhlsUpdate): void {
    if (update.type === 'part') {
      const { partTarget = 0 } = this.#model.tracks.get(update.trackId) ?? {};
      this.#timeliness?.part(update.trackId, partTarget || this.settings.chunkDuration, this.feed.watched);
    } else if (update.type === 'track-gone' || (update.type === 'segment-open' && update.gap)) this.#timeliness?.pause(update.trackId);
  }

  #segmentClosed(trackId: number): void {
    const track = this.#model.tracks.get(trackId);
    if (track === undefined) return;
    const segment = track.segments.at(-1);
    if (segment !== undefined && this.isObserved) this.tellObservers(this.#observed(track, segment));
    this.#windows.get(track.id)?.segmentClosed();
  }

  #observed(track: TrackModel, segment: SegmentModel): ObservedSegment {
    const { msn, generation, duration, startTime, discontinuity, tags } = segment;
    const names = new ResourceNames(track, this.#runMark);
    const bytes = track.inits.get(generation);
    return {
      playlist: names.chunklist,
      uri: names.segment(msn),
      number: msn,
      init: bytes === undefined ? null : { uri: names.init(generation), bytes },
      duration: duration ?? 0,
      read: () => this.copyOf(segment),
      ...{ startTime, discontinuity, tags },
    };
  }

  #send(): void {
    if (this.#pending.length === 0 || this.closed) return;
    const updates = this.#pending;
    this.#pending = [];
    this.feed.update(updates);
  }
}
