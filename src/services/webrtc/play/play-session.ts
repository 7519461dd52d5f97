/** One viewer of a stream: its negotiated media, and its rendition. */
import { PublisherKind } from '../../../core/kinds.ts';
import type { Playlist } from '../../../core/playlist.ts';
import { NO_ROOM, type SessionHandle } from '../../../core/publishing.ts';
import type { Logger } from '../../../util/logger.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { randomWord } from '../../../wire/ice/ice-credentials.ts';
import type { ArrivalReport } from '../../../wire/rtp/arrival-report.ts';
import { readViewerFeedback, roundTrip, type ViewerReport } from '../../../wire/rtp/viewer-feedback.ts';
import { type LocalMedia, serializeDescription } from '../../../wire/sdp/local-description.ts';
import { parseSessionDescription } from '../../../wire/sdp/session-description.ts';
import type { PeerListener, PeerSession } from '../transport/peer-session.ts';
import type { PeerTransport } from '../transport/peer-transport.ts';
import type { ViewerTotals } from '../webrtc-metrics.ts';
import { AutoRendition } from './auto-rendition.ts';
import { BandwidthEstimator } from './bandwidth-estimator.ts';
import type { MediaKind } from './codec-plan.ts';
import type { MediaSource } from './media-source.ts';
import { type Agreement, answerOffer, askedKinds, newNumbers, offerMedias, readSdpAnswer } from './negotiation.ts';
import type { WebrtcSettings } from './settings.ts';
import { trackNotice } from './track-notice.ts';
import type { StreamRendition, WebrtcStream } from './webrtc-stream.ts';

const CNAME_LENGTH = 16;
const STREAM_ID_LENGTH = 36;
const MID_LENGTH = 6;

/** Options of a session. */
export interface PlaySessionOptions {
  readonly stream: WebrtcStream;
  readonly playlist: Playlist;
  readonly transport: PeerTransport;
  /** Source address of the request. */
  readonly client: string;
  readonly logger: Logger;
  /** The session has ended by itself; once. */
  readonly onEnded: (reason: string) => void;
  /** Another rendition is being sent, from the keyframe with which it took over. */
  readonly onRendition?: (name: string, auto: boolean) => void;
}

/** Opened by signalling and closed by it, by its stream, or by itself. Counts as a viewer only while it plays. */
export class PlaySession implements PeerListener {
  readonly playlist: Playlist;
  readonly #options: PlaySessionOptions;
  readonly #client: string;
  readonly #peer: PeerSession;
  readonly #logger: Logger;
  readonly #cname = randomWord(CNAME_LENGTH);
  readonly #settings: WebrtcSettings;
  readonly #adaptation = new AutoRendition();
  readonly #estimator = new BandwidthEstimator();
  readonly #streamId = randomWord(STREAM_ID_LENGTH);
  #renditions: readonly StreamRendition[];
  #offered: (LocalMedia & { readonly kind: MediaKind })[] = [];
  #agreement: Agreement | null = null;
  #rendition: StreamRendition | null = null;
  /** The rendition that the viewer sees, and was last notified of; `#rendition` replaces it. */
  #shown: StreamRendition | null = null;
  /** The rendition takes over with the next keyframe of this source; the viewer is notified then. */
  #awaited: MediaSource | null = null;
  /** The viewer's consent has expired (RFC 7675): nothing is sent until it returns. */
  #paused = false;
  #auto: boolean;
  /** Set while the viewer plays. */
  #handle: SessionHandle | null = null;
  #ended = false;
  #counted = 0;
  #keyframeRequests = 0;
  #renditionChanges = 0;
  #estimate: number | null = null;
  #roundTrip: number | undefined;
  /** Packets reported lost since the beginning, by source. */
  readonly #lost = new Map<number, number>();

  /** Throws ProtocolError when the playlist has nothing that browsers play. */
  constructor(options: PlaySessionOptions) {
    const { stream, playlist, transport } = options;
    this.#options = options;
    this.playlist = playlist;
    this.#auto = playlist.options.webrtcAutoAbr;
    this.#renditions = stream.renditions(playlist);
    if (this.#renditions.length === 0)
      throw new ProtocolError('WEBRTC_CODECS', 'the playlist has no track that WebRTC carries (H264, H265, VP8, AV1, OPUS)');
    // Feedback about every packet is expensive, and useless with a single rendition.
    this.#settings = this.#renditions.length > 1 ? stream.settings : { ...stream.settings, bandwidthEstimation: 'REMB' };
    this.#client = options.client;
    this.#peer = transport.openSession(this, { use: 'play', client: options.client, timeout: stream.settings.timeout });
    this.#logger = options.logger.limited.child({ ...stream.fields, session: this.#peer.credentials.ufrag, peer: options.client });
    stream.add(this);
  }

  /** Unguessable name of the session. */
  get id(): string {
    return this.#peer.credentials.ufrag;
  }

  get renditions(): readonly StreamRendition[] {
    return this.#renditions;
  }

  get rendition(): StreamRendition | null {
    return this.#rendition;
  }

  /** A track of a rendition, as announced to players. */
  notice({ track }: MediaSource): object {
    return trackNotice(track, this.#options.stream.published.figures(track.id));
  }

  get auto(): boolean {
    return this.#auto;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Attempts to connect, for the log; empty once it was connected. */
  get attempts(): string {
    return this.#peer.attempts;
  }

  /** PLI and FIR received. */
  get keyframeRequests(): number {
    return this.#keyframeRequests;
  }

  /** Bandwidth of the viewer's path, bits per second, by its own estimate or by ours; null before the first. */
  get estimate(): number | null {
    return this.#estimate;
  }

  /** Candidates to tell the viewer beside an offer. */
  candidates(): readonly string[] {
    return this.#peer.candidates();
  }

  /** Our offer, without candidates. */
  offer(): string {
    const tracks = this.#renditions
      .flatMap(({ video, audio }) => [video, audio].filter((source) => source !== null))
      .map(({ track }) => track);
    const mids = { video: randomWord(MID_LENGTH), audio: randomWord(MID_LENGTH) };
    this.#offered = offerMedias(tracks, this.#settings, mids, { video: newNumbers(), audio: newNumbers() });
    return serializeDescription({
      credentials: this.#peer.credentials,
      fingerprint: this.#options.transport.fingerprint,
      setup: 'actpass',
      candidates: [],
      cname: this.#cname,
      streamId: this.#streamId,
      medias: this.#offered,
    });
  }

  /** Takes the viewer's answer. Throws ProtocolError if it is unplayable. */
  answered(text: string): void {
    const agreement = readSdpAnswer(parseSessionDescription(text), this.#offered, this.#settings, this.#cname);
    // Players of this protocol accept any rendition.
    this.#begin(agreement, ['video', 'audio']);
    this.#peer.announced(text);
  }

  /** Candidates of the viewer are only logged, because the viewer connects to us. */
  announced(candidates: string): void {
    this.#peer.announced(candidates);
  }

  /** Answers the viewer's offer. Throws ProtocolError. */
  accept(text: string): string {
    const { transport } = this.#options;
    const tracks = this.#renditions
      .flatMap(({ video, audio }) => [video, audio].filter((source) => source !== null))
      .map(({ track }) => track);
    const offer = parseSessionDescription(text);
    const { agreement, medias } = answerOffer(offer, tracks, this.#settings, this.#cname);
    this.#begin(agreement, askedKinds(offer));
    this.#peer.announced(text);
    return serializeDescription({
      credentials: this.#peer.credentials,
      fingerprint: transport.fingerprint,
      setup: agreement.role === 'server' ? 'passive' : 'active',
      candidates: this.#peer.candidates(),
      cname: this.#cname,
      streamId: this.#streamId,
      medias,
    });
  }

  /** Changes to another rendition with its next keyframe. False for an unknown name. */
  changeRendition(name: string): boolean {
    const wanted = this.#renditions.find((rendition) => rendition.name === name);
    if (wanted === undefined) return false;
    if (wanted === this.#rendition) return true;
    this.#rendition = wanted;
    this.#renditionChanges += 1;
    this.#adaptation.selected(name, this.#options.transport.now());
    if (this.#handle !== null) this.#play();
    // A viewer that switches back before the other rendition took over has never left.
    this.#awaited = this.#handle !== null && wanted.video !== this.#shown?.video ? wanted.video : null;
    if (this.#awaited === null) this.#tell(wanted);
    return true;
  }

  /** A keyframe of `source` was sent. */
  keyframe(source: MediaSource): void {
    if (source !== this.#awaited || this.#rendition === null) return;
    this.#awaited = null;
    this.#tell(this.#rendition);
  }

  setAuto(auto: boolean): void {
    this.#auto = auto;
    const shown = this.#shown ?? this.#rendition;
    if (shown !== null) this.#tell(shown);
  }

  unreached(attempts: string): void {
    this.#logger.info({}, `no packet of the viewer has arrived yet${attempts}`);
  }

  connected(): void {
    const { published } = this.#options.stream;
    // An offer reserves no room: the publisher may be full by now.
    if (!published.hasRoom(PublisherKind.WEBRTC)) {
      this.#peer.fail(NO_ROOM);
      return;
    }
    this.#handle = published.openSession({
      kind: PublisherKind.WEBRTC,
      id: this.id,
      client: this.#client,
      onTerminate: (reason) => this.#peer.fail(reason),
    });
    this.#logger.info({ path: this.#peer.place }, 'viewer session plays over WebRTC');
    this.#play();
    if (this.#rendition !== null) this.#tell(this.#rendition);
  }

  consented(given: boolean): void {
    this.#paused = !given;
    this.#logger.info({ path: this.#peer.place }, given ? 'viewer session resumed' : 'viewer session paused: the viewer does not answer');
    if (this.#handle !== null) this.#play();
  }

  rtcp(packet: Buffer): void {
    const { keyframeWanted, remb, reports, arrivals } = readViewerFeedback(packet);
    for (const report of reports) this.#note(report);
    if (keyframeWanted) {
      this.#keyframeRequests += 1;
      const video = this.#rendition?.video ?? null;
      if (video !== null) this.#options.stream.repair(video);
    }
    let estimate = remb;
    for (const report of arrivals) estimate = this.#judge(report) ?? estimate;
    if (estimate === null) return;
    this.#estimate = estimate;
    if (this.#auto) this.#adapt(estimate);
  }

  /** Its figures so far, for metrics. */
  get totals(): ViewerTotals {
    const { packets = 0, nacked = 0, resent = 0 } = this.#peer.counters ?? {};
    let lost = 0;
    for (const count of this.#lost.values()) lost += count;
    const { roundTrip, estimate } = { roundTrip: this.#roundTrip, estimate: this.#estimate ?? undefined };
    return { packets, nacked, resent, lost, keyframeRequests: this.#keyframeRequests, roundTrip, estimate };
  }

  closed(reason: string): void {
    this.#end(reason);
    this.#options.onEnded(reason);
  }

  /** Adds the bytes since the last call to the stream's counters. */
  countBytes(): void {
    const bytes = this.#peer.counters?.bytes ?? 0;
    if (bytes <= this.#counted) return;
    this.#options.stream.published.meter.countBytes(bytes - this.#counted);
    this.#handle?.countBytes(bytes - this.#counted);
    this.#counted = bytes;
  }

  /** The stream's sources were replaced: renditions have to be looked up again. */
  refresh(): void {
    const { stream } = this.#options;
    this.#renditions = this.#filtered(stream.renditions(this.playlist));
    const named = (name: string | undefined): StreamRendition | undefined => this.#renditions.find((rendition) => rendition.name === name);
    this.#rendition = named(this.#rendition?.name) ?? this.#renditions[0] ?? null;
    this.#shown = named(this.#shown?.name) ?? this.#rendition;
    if (this.#awaited !== null) this.#awaited = this.#rendition?.video ?? null;
    if (this.#handle !== null) this.#play();
  }

  /** Ends the session; `onEnded` is not called. Idempotent. */
  close(reason: string): void {
    if (this.#ended) return;
    this.#peer.close();
    this.#end(reason);
  }

  #note(report: ViewerReport): void {
    const { stream, transport } = this.#options;
    const { ssrc, totalLost, fractionLost } = report;
    const isOurs = this.#agreement?.plan.slots.some((slot) => slot.ssrc === ssrc) === true;
    if (!isOurs) return;
    this.#lost.set(ssrc, Math.max(0, totalLost, this.#lost.get(ssrc) ?? 0));
    stream.reports?.losses.observe(fractionLost);
    const seconds = roundTrip(report, transport.wall());
    if (seconds === null) return;
    this.#roundTrip = seconds;
    stream.reports?.roundTrips.observe(seconds);
  }

  #begin(agreement: Agreement, asked: readonly MediaKind[]): void {
    if (this.#agreement !== null) throw new ProtocolError('WEBRTC_ANSWER', 'the session has its answer already');
    this.#agreement = agreement;
    this.#tellLacks(agreement);
    this.#renditions = this.#filtered(this.#renditions);
    const [first] = this.#renditions;
    if (first === undefined) throw new ProtocolError('WEBRTC_CODECS', 'no rendition has the negotiated codecs');
    this.#rendition = first;
    this.#adaptation.selected(first.name, this.#options.transport.now());
    this.#peer.start(agreement);
    this.#options.stream.judge({ playlist: this.playlist, asked, agreed: agreement.medias.map(({ kind }) => kind) });
    this.#logger.info({}, 'viewer session opened');
  }

  /** Logs that the viewer gets no video or no audio because of its player's codecs: the viewer cannot know the reason. */
  #tellLacks({ medias }: Agreement): void {
    for (const kind of ['video', 'audio'] as const) {
      const codecs = [...new Set(this.#renditions.flatMap((rendition) => rendition[kind]?.track.codec ?? []))];
      if (codecs.length === 0 || medias.some((media) => media.kind === kind)) continue;
      this.#logger.info({ codecs }, `viewer gets no ${kind}: its player supports none of ${codecs.join(', ')}`);
    }
  }

  /**
   * The renditions with all negotiated media, in its codecs: in others the viewer would miss video or audio. If there are none, those with
   * a part of the media.
   */
  #filtered(renditions: readonly StreamRendition[]): StreamRendition[] {
    const medias = this.#agreement?.medias ?? [];
    const inPart = renditions.filter((rendition) =>
      medias.every(({ kind, codec }) => rendition[kind] === null || rendition[kind].track.codec === codec),
    );
    const whole = inPart.filter((rendition) => medias.every(({ kind }) => rendition[kind] !== null));
    return whole.length > 0 ? whole : inPart;
  }

  /** A new estimate, when the report brings one. */
  #judge(report: ArrivalReport): number | null {
    const { stream } = this.#options;
    if (this.#settings.bandwidthEstimation !== 'TransportCC' || this.#rendition === null) return null;
    return this.#estimator.report(report, stream.sends(this.#peer.viewer, report), stream.bitrate(this.#rendition));
  }

  #tell(rendition: StreamRendition): void {
    this.#shown = rendition;
    this.#options.onRendition?.(rendition.name, this.#auto);
  }

  #adapt(estimate: number): void {
    const { stream, transport } = this.#options;
    if (this.#rendition === null || this.#renditions.length < 2) return;
    const rates = this.#renditions.map((rendition) => ({ name: rendition.name, bitrate: stream.bitrate(rendition) }));
    const current = rates.find(({ name }) => name === this.#rendition?.name);
    const next = current === undefined ? null : this.#adaptation.evaluate(transport.now(), estimate, current, rates);
    if (next !== null) this.changeRendition(next.name);
  }

  #play(): void {
    const { fanout } = this.#options.transport;
    const rendition = this.#paused ? null : this.#rendition;
    this.#agreement?.medias.forEach(({ kind }, slot) => {
      fanout.play(this.#peer.viewer, slot, rendition?.[kind]?.id ?? null);
    });
    const video = rendition?.video ?? null;
    if (video !== null) this.#options.stream.requestKeyframe(video);
  }

  #end(reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    // The last chance to count the bytes sent since the last count.
    this.countBytes();
    const { stream } = this.#options;
    stream.remove(this);
    this.#handle?.close(reason);
    if (this.#agreement === null) return;
    const figures = {
      ...this.#peer.counters,
      tcpDropped: this.#peer.tcpDropped,
      keyframeRequests: this.#keyframeRequests,
      renditionChanges: this.#renditionChanges,
      estimate: this.#estimate,
    };
    this.#logger.info(figures, `viewer session closed: ${reason}${this.#peer.attempts}`);
  }
}
