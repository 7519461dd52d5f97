import { isDeepStrictEqual } from 'node:util';
import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import { guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import { EventInjector, keyframesOf } from './event-injector.ts';
import type { InboundStreamOptions } from './inbound-options.ts';
import { InboundQueue, type SourceItem } from './inbound-queue.ts';
import type { CloseReason, IngestRequest, IngestStream, SourceCue, SourceEvent, SourcePacket, SourceTrack } from './ingest.ts';
import { isRecoverable } from './ingest.ts';
import { type ProviderKind, SourceType } from './kinds.ts';
import { MediaRouter } from './media-router.ts';
import type { OutboundStream } from './outbound-stream.ts';
import type { Playlist } from './playlist.ts';
import { type Session, SessionRegistry } from './session-registry.ts';
import { SourceVerdict } from './source-verdict.ts';
import { type CoveredStream, StandInController } from './stand-in-controller.ts';
import { endFacts } from './stream-end.ts';
import type { LeftOutProfile, Outputs } from './stream-outputs.ts';
import { StreamSource } from './stream-source.ts';
import { type StreamTap, StreamTaps } from './stream-taps.ts';
import { SubtitleInjector } from './subtitle-injector.ts';
import { TrackLines } from './track-lines.ts';
import { type TrackMeter, TrackMeters } from './track-meter.ts';
import type { TrafficMeter } from './traffic-meter.ts';
import { mostUrgent, type Urgency } from './urgency.ts';

/** A stream as it comes in, before output profiles. */
export class InboundStream implements IngestStream, CoveredStream {
  readonly id: number;
  readonly vhost: string;
  readonly app: string;
  readonly name: string;
  /** Wall clock, ms. */
  readonly createdAt: number;
  readonly meter: TrafficMeter;
  readonly events: EventInjector;
  readonly subtitles: SubtitleInjector;
  /** Viewers of all its outputs. */
  readonly sessions: SessionRegistry;
  readonly #options: InboundStreamOptions<InboundStream>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #queue: InboundQueue;
  readonly #router: MediaRouter;
  /** The present or last source. */
  readonly source: StreamSource;
  /** Packets of the source, including those of its stand-in. */
  packetsIn = 0;
  readonly #meters = new TrackMeters();
  #outputs: Outputs;
  readonly #taps: StreamTaps;
  #playlists: readonly Playlist[] = [];
  #shown = false;
  #started = false;
  readonly #verdict: SourceVerdict;
  readonly #trackLines: TrackLines;
  /** The router or an output has failed: waiting packets are not processed. */
  #broken = false;
  #closed = false;
  /** When the provider brought its last packet; monotonic, ms. */
  #lastPacketAt = 0;
  readonly #standInController: StandInController | null;

  constructor(options: InboundStreamOptions<InboundStream>) {
    const { request, standIn, clock, logger, keepMs, meter, notices } = options;
    this.#options = options;
    this.id = options.id;
    this.vhost = options.vhost;
    this.app = options.app;
    this.name = request.streamName;
    this.createdAt = options.clock.now();
    this.meter = options.meter;
    const opened = (session: Session): void => {
      this.wake();
      notices.sessionStarted(session);
    };
    this.sessions = new SessionRegistry(options.clock, options.meter, opened, (session, reason) => notices.sessionEnded(session, reason));
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#trackLines = new TrackLines(options.logger);
    this.source = new StreamSource({
      ...{ request, keepMs, clock, logger, meter },
      onSilent: (limit) => this.#endSource({ code: 'timeout', detail: `no audio and no video for ${limit} ms (PacketSilenceTimeoutMs)` }),
    });
    this.#queue = new InboundQueue({
      queues: options.queues,
      urn: `mngq:v=${this.vhost}#${this.app}:s=/${this.name}:p=imr:r=indicator`,
      onItem: (item) => this.#route(item),
      onDrained: () => this.#outputs.drain(),
      onFault: (error) => this.fail(error),
      source: () => (this.source.present ? this.source.request : {}),
    });
    this.#verdict = new SourceVerdict({
      ...{ clock, logger, closed: () => this.#closed, standsIn: () => this.#standInController?.onAir === true },
      onUnusable: (reason, ofStandIn) => this.#sendAway(reason, ofStandIn),
    });
    this.#router = new MediaRouter(
      { onTracks: (tracks) => this.#onTracks(tracks), onPacket: (packet) => this.#onPacket(packet) },
      { keepSourceTime: options.keepSourceTime, steadyTime: request.steadyTime ?? false, subtitles: options.subtitles ?? [] },
    );
    this.#outputs = options.createOutputs(this);
    this.events = new EventInjector({
      clock: options.clock,
      router: this.#router,
      keyframes: () => keyframesOf(this),
      passesVideo: () => this.#outputs.passesVideo,
      onPacket: (packet, urgent) => this.#onEvent(packet, urgent),
    });
    this.#taps = new StreamTaps(options.logger);
    this.subtitles = new SubtitleInjector({
      clock: options.clock,
      router: this.#router,
      isOpen: () => !this.#closed && !this.#verdict.isUnusable,
      onPacket: (packet) => this.#onEvent(packet, false),
      onSent: () => this.#outputs.drain(),
    });
    this.source.begin(options.silenceTimeoutMs);
    this.#standInController = standIn === undefined ? null : new StandInController({ ...standIn, keepMs, stream: this, clock, logger });
  }

  /** Asks the source for a keyframe, if its protocol can do that. The source is not asked while its stand-in is on air. */
  requestKeyframe(trackId: number): void {
    if (this.#standInController?.onAir !== true) this.askKeyframe(trackId);
  }

  askKeyframe(trackId: number): void {
    if (!this.#closed && this.source.present) this.source.request.onKeyframeWanted?.(trackId);
  }

  /** A client needs packets from now on. */
  wake(): void {
    if (this.#closed) return;
    this.#standInController?.wake();
    this.source.request.onWatched?.();
  }

  get closed(): boolean {
    return this.#closed;
  }

  get provider(): ProviderKind {
    return this.source.request.provider;
  }

  get sourceType(): SourceType {
    if (this.#standInController?.onAir !== true) return this.source.request.sourceType;
    return this.#standInController.url.startsWith('file:') ? SourceType.FILE : SourceType.MULTIPLEX;
  }

  /** End of the media passed on so far, ms of the stream. */
  get mediaEnd(): number {
    return this.#router.end * 1000;
  }

  /** State of its stand-in; null without one. */
  get standIn(): Pick<StandInController, 'onAir' | 'airings'> | null {
    return this.#standInController;
  }

  /** Since the source sent audio or video, ms. */
  get silence(): number {
    return this.source.silenceWatch.silence;
  }

  /** The source has announced its tracks. */
  get started(): boolean {
    return this.#started;
  }

  get urgency(): Urgency {
    return mostUrgent(this.#outputs.urgency, this.#taps.urgency);
  }

  get neededAt(): number {
    return Math.min(this.#outputs.neededAt, this.#taps.neededAt);
  }

  /** Passes tracks and packets to `tap` from now on; returns an idempotent function that ends this. */
  tap(tap: StreamTap): () => void {
    this.wake();
    return this.#taps.add(tap, this.tracks);
  }

  /** The API lists it: it has started, or `show` was called. */
  get listed(): boolean {
    return this.#started || this.#shown;
  }

  /** Where the media comes from now. */
  get sourceUrl(): string {
    return this.#standInController?.onAir === true ? this.#standInController.url : this.source.url;
  }

  /** Lists the stream before its source has announced tracks; for pulled streams, whose source may be absent. */
  show(): void {
    this.#shown = true;
    this.#options.notices.listed(this);
  }

  /** The media comes from another place now. */
  moveTo(sourceUrl: string): void {
    this.source.moveTo(sourceUrl);
    this.#options.notices.sourceCame(this);
  }

  /** Links the stream to its source, with the `settings` of its provider. */
  link(settings?: unknown): IngestStream {
    return this.source.link({ stream: this.#standInController?.gate() ?? this, settings, onClose: (reason) => this.#sourceLeft(reason) });
  }

  /** Gives a linked stream another source, which continues where the last one ended; a present source is disconnected. */
  takeOver(request: IngestRequest, silenceTimeoutMs: number, settings?: unknown): IngestStream {
    this.#drainLast();
    const before = this.source.replace(request, silenceTimeoutMs);
    this.#queue.forgetCongestion();
    this.#options.notices.sourceCame(this);
    const waits = this.#standInController?.isCalled === true;
    if (!waits) this.changeSource();
    this.#logger.info(
      { source: request.sourceUrl },
      `${request.sourceUrl} continues the stream${waits ? ' from its first keyframe on' : ''}`,
    );
    before?.onClose({ code: 'replaced', detail: `replaced by ${request.sourceUrl}` });
    return this.link(settings);
  }

  /**
   * This server makes the stream itself from now on. Its outputs are made as for a new stream; outbound streams of the same names continue.
   */
  passTo(request: IngestRequest, silenceTimeoutMs: number): void {
    this.#drainLast();
    const before = this.source.replace(request, silenceTimeoutMs);
    this.#queue.forgetCongestion();
    this.#outputs = this.#options.createOutputs(this, this.#outputs.release());
    this.changeSource();
    before?.onClose({ code: 'replaced', detail: `replaced by ${request.sourceUrl}` });
  }

  /**
   * Another source follows and continues where the last one ended. `keepsTime` false: its times do not count, even if the application keeps
   * source times.
   */
  changeSource({ keepsTime = true }: { readonly keepsTime?: boolean } = {}): void {
    this.source.changes += 1;
    this.#queue.work();
    this.#verdict.restart();
    this.events.forget();
    this.#router.changeSource({ keepsTime });
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

  /** Output profiles that make no stream of it. */
  get leftOut(): readonly LeftOutProfile[] {
    return this.#outputs.leftOut;
  }

  figures(trackId: number): TrackMeter {
    return this.#meters.of(trackId);
  }

  setTracks(tracks: readonly SourceTrack[], playlists: readonly Playlist[] = []): void {
    if (this.#closed || this.#verdict.isUnusable) return;
    this.source.silenceWatch.setTracks(tracks);
    this.takeTracks(tracks, playlists);
  }

  /** As `setTracks`, for tracks that are not the source's. */
  takeTracks(tracks: readonly SourceTrack[], playlists: readonly Playlist[] = []): void {
    if (this.#closed || this.#verdict.isUnusable) return;
    this.#queue.work();
    const renewed = this.#started && !isDeepStrictEqual(this.#playlists, playlists);
    const before = { started: this.#started, playlists: this.#playlists };
    this.#started = true;
    this.#playlists = playlists;
    try {
      this.#trackLines.tellFault(this.#router.setTracks(tracks));
    } catch (error) {
      this.#started = before.started;
      this.#playlists = before.playlists;
      this.#verdict.change(this.tracks, this.#clock.monotonic());
      throw error;
    }
    if (renewed) this.#outputs.renewPlaylists();
  }

  push(packet: SourcePacket): void {
    if (this.#closed || this.#verdict.isUnusable) return;
    this.take(packet);
    this.source.silenceWatch.heard(packet.trackId, this.#lastPacketAt);
  }

  /** As `push`, for packets that do not come from the source. */
  take(packet: SourcePacket): void {
    if (this.#closed || this.#verdict.isUnusable) return;
    this.packetsIn += 1;
    this.#lastPacketAt = this.#clock.monotonic();
    this.#queue.push(packet, this.#lastPacketAt);
  }

  heard(packet: SourcePacket): void {
    this.source.silenceWatch.heard(packet.trackId, this.#clock.monotonic());
  }

  heardTracks(tracks: readonly SourceTrack[]): void {
    this.source.silenceWatch.setTracks(tracks);
  }

  /** Disconnects a source whose packets are all discarded. */
  dismiss(detail: string): void {
    const { request } = this.source;
    this.#verdict.soon(() => {
      if (this.source.request === request) this.#endSource({ code: 'peer-error', detail });
    });
  }

  pushEvent(event: SourceEvent): boolean {
    return this.inject({ ...event, ofSource: true }, false);
  }

  /** Puts an event onto the data track; an urgent one goes before everything that waits. See `IngestStream.pushEvent`. */
  inject(event: SourceEvent, urgent: boolean): boolean {
    if (this.#closed || this.#verdict.isUnusable || !this.events.admits(event)) return false;
    if (urgent) {
      this.events.carry(event, true);
      this.#outputs.drain();
    } else this.#queue.push(event, this.#clock.monotonic());
    return true;
  }

  pushCue(language: string, cue: SourceCue): boolean {
    return this.subtitles.carry(language, cue);
  }

  countBytes(bytes: number): void {
    if (!this.#closed) this.meter.countBytesIn(bytes);
  }

  close(reason: CloseReason): void {
    if (this.#closed) return;
    this.#drainLast();
    // The rest of the packets may have closed the stream.
    if (this.#closed) return;
    this.#closed = true;
    this.#standInController?.close();
    this.#queue.close();
    try {
      this.#outputs.close(reason);
    } catch (error) {
      this.#logger.error({ err: error }, 'the output streams failed while they were closed');
    }
    this.#taps.end(reason);
    this.source.close();
    this.meter.retire();
    this.#logger.info(endFacts(this, this.#router, { reason, now: this.#clock.now() }), `stream closed: ${reason.detail}`);
    this.#options.onEnd(this, reason);
  }

  /** Ends the stream from the server's side: its connection goes too. Idempotent. */
  terminate(reason: CloseReason): void {
    if (this.#closed) return;
    const hadSource = this.source.present;
    this.close(reason);
    if (hadSource) this.source.tellClosed(reason);
  }

  /** The source has ended. */
  #sourceLeft(reason: CloseReason): void {
    if (this.#isKept(reason)) {
      this.#outlive(reason);
      return;
    }
    this.#standInController?.close();
    this.#drainLast();
    const end = guarded(this.#logger, 'the end of a stream', () => this.close(reason));
    if (this.#closed || this.#broken || !this.#outputs.settle(reason, end)) this.close(reason);
    else {
      this.#loseSource();
      this.source.unlink();
    }
  }

  /** The stream continues without a source. */
  #loseSource(): void {
    this.#drainLast();
    this.source.leave();
  }

  #isKept({ code }: CloseReason): boolean {
    const isWanted = this.source.keepMs > 0 || this.#standInController?.canStandIn === true;
    return isWanted && this.#started && !this.#closed && this.source.linked && isRecoverable(code);
  }

  /** The stream continues without a source until another source comes, or the wait is over. */
  #outlive(reason: CloseReason): void {
    this.#loseSource();
    this.#options.notices.sourceLost(reason);
    if (this.#standInController?.canStandIn === true) {
      this.#standInController.encoderLeft(reason);
      return;
    }
    const { keepMs } = this.source;
    this.#logger.info({ reason: reason.code }, `source lost: ${reason.detail}; the stream waits ${keepMs} ms for another source`);
    const detail = `no source came within ${keepMs} ms (KeepStreamMs) after: ${reason.detail}`;
    this.source.awaitNext(guarded(this.#logger, 'the end of a stream', () => this.close({ code: reason.code, detail })));
  }

  /** Sends the source away; the stream waits for another one where it is kept, else it ends. */
  #endSource(reason: CloseReason): void {
    if (this.#closed || !this.source.present) return;
    this.#sourceLeft(reason);
    this.source.tellClosed(reason);
  }

  /** Stops accepting packets from a source that is refused or faulty. */
  judge(what: string, code: CloseReason['code']): void {
    this.#verdict.judge(what, code);
  }

  /** Sends an unusable source away, or its stand-in. */
  #sendAway(reason: CloseReason, ofStandIn: boolean): void {
    if (ofStandIn) this.#standInController?.fail(reason.detail);
    else if (!this.source.present && this.#standInController?.onAir === true) this.close(reason);
    else if (!this.source.present || this.source.request.onUnusable === undefined) this.#endSource(reason);
    else this.source.request.onUnusable(reason);
  }

  /** An internal error while handling this stream: it ends this stream and no other. */
  fail(error: unknown): void {
    this.#logger.error({ err: error }, 'the stream failed inside the server');
    this.#broken = true;
    this.terminate({ code: 'peer-error', detail: 'internal error' });
  }

  /** Processes the remaining packets before the end. Never throws, because an exception here would end the server. */
  #drainLast(): void {
    if (this.#broken) return;
    try {
      this.#queue.work();
    } catch (error) {
      this.#broken = true;
      this.#logger.error({ err: error }, 'the rest of the stream failed inside the server');
    }
  }

  #route(item: SourceItem): void {
    if (this.#verdict.isUnusable) return;
    if (!('trackId' in item)) {
      this.events.carry(item, false);
      return;
    }
    this.#router.push(item);
    const { malformed, firstFault } = this.#router.counters;
    this.#verdict.malformed(malformed, firstFault);
  }

  #onTracks(tracks: readonly Track[]): void {
    const now = this.#clock.monotonic();
    if (!this.#verdict.change(tracks, now)) return;
    this.#options.notices.listed(this);
    this.#outputs.setTracks(tracks, this.#router.complete);
    this.#taps.setTracks(tracks);
    this.#standInController?.tracksChanged();
    this.#trackLines.tell(tracks, now);
  }

  #onPacket(packet: Packet): void {
    if (!this.#verdict.packet(packet, this.#lastPacketAt)) return;
    this.#standInController?.flows();
    this.figures(packet.track.id).count(packet);
    this.#outputs.push(packet);
    this.#taps.push(packet);
    if (this.events.waits) this.events.pass(packet);
  }

  #onEvent(packet: Packet, urgent: boolean): void {
    this.figures(packet.track.id).count(packet);
    this.#outputs[urgent ? 'pushAhead' : 'push'](packet);
    this.#taps.push(packet);
  }
}
