/** One publisher: its inbound stream, its peer, and the negotiated formats. */
import type { CloseReason, IngestGate, IngestStream, IngestTarget } from '../../../core/ingest.ts';
import { ProviderKind, SourceType } from '../../../core/kinds.ts';
import type { StreamAddress } from '../../../core/stream-address.ts';
import type { Clock } from '../../../util/clock.ts';
import type { Logger } from '../../../util/logger.ts';
import { faultDetail } from '../../../util/message-of.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { randomWord } from '../../../wire/ice/ice-credentials.ts';
import { type LocalMedia, serializeDescription } from '../../../wire/sdp/local-description.ts';
import { parseSessionDescription } from '../../../wire/sdp/session-description.ts';
import type { StreamTarget } from '../signalling/request-place.ts';
import { PEER_LEFT, type PeerListener, type PeerSession } from '../transport/peer-session.ts';
import type { PeerTransport } from '../transport/peer-transport.ts';
import type { PublisherTotals } from '../webrtc-metrics.ts';
import { IngestFeed } from './ingest-feed.ts';
import { answerIngest, type IngestAgreement, offerIngest, readIngestAnswer } from './ingest-negotiation.ts';
import type { IngestTrack } from './ingest-track.ts';
import { readCapabilities } from './oven-capabilities.ts';

const CNAME_LENGTH = 16;
const STREAM_ID_LENGTH = 36;
const MID_LENGTH = 6;

/** The WebRTC provider's part of an application's configuration. */
export interface WebrtcIngestSettings {
  /** Gives up a publisher whose ICE is silent for this long, ms. */
  readonly timeout: number;
  /** A keyframe is asked for when none came for this long, ms; 0 leaves it to the encoder. */
  readonly keyframeInterval: number;
}

/** Options of a session. The name of the stream is taken later, with the agreed description. */
export interface IngestSessionOptions {
  readonly target: StreamTarget;
  readonly gate: IngestGate;
  readonly transport: PeerTransport;
  readonly settings: WebrtcIngestSettings;
  /** Source address of the request. */
  readonly client: string;
  /** `Oven-Capabilities` of the request; empty without one. */
  readonly capabilities: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The session has ended by itself; once. */
  readonly onEnded: (reason: string) => void;
  /** The publisher is connected: call `tick` from now on. */
  readonly onConnected: (session: IngestSession) => void;
  /** The session is over, whichever side ended it; called once. */
  readonly onClosed: (session: IngestSession) => void;
}

/** Opened by signalling and closed by it, by the provider at its end, or by itself; stream and peer end with it. */
export class IngestSession implements PeerListener {
  readonly #options: IngestSessionOptions;
  /** Set when the publisher's session description comes: our offer does not take the name. */
  #stream: IngestStream | null = null;
  readonly #peer: PeerSession;
  readonly #logger: Logger;
  readonly #openedAt: number;
  #offered: readonly LocalMedia[] = [];
  #feed: IngestFeed | null = null;
  readonly #cname = randomWord(CNAME_LENGTH);
  readonly #streamId = randomWord(STREAM_ID_LENGTH);
  #ended = false;

  /** Throws IngestRefused when the stream could not be published now, and ProtocolError `WEBRTC_FULL`. */
  constructor(options: IngestSessionOptions) {
    const { target, gate, transport, settings, client, clock, logger } = options;
    this.#options = options;
    this.#openedAt = clock.monotonic();
    gate.checkIngest(placeOf(target), { streamName: target.stream, provider: ProviderKind.WEBRTC });
    this.#peer = transport.openSession(this, { use: 'publish', client, timeout: settings.timeout });
    const { vhost, app, stream } = target;
    this.#logger = logger.limited.child({ vhost, app, stream, session: this.#peer.credentials.ufrag, peer: client });
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Figures of the stream's received and lost packets; null while there is none. */
  get totals(): PublisherTotals | null {
    if (this.#ended || this.#feed === null) return null;
    const sums = { received: 0, lost: 0, recovered: 0, requested: 0, keyframeRequests: 0 };
    for (const { received, counters } of this.#feed.tracks) {
      sums.received += received.received;
      sums.lost += received.lost;
      sums.recovered += received.recovered;
      sums.requested += received.requested;
      sums.keyframeRequests += counters.keyframeRequests;
    }
    return sums;
  }

  get address(): StreamAddress {
    const { vhost, app, stream } = this.#options.target;
    return { vhost, app, stream };
  }

  /** Candidates to tell the publisher beside an offer. */
  candidates(): readonly string[] {
    return this.#peer.candidates();
  }

  /** Our offer, without candidates. */
  offer(): string {
    this.#offered = offerIngest({ video: randomWord(MID_LENGTH), audio: randomWord(MID_LENGTH) });
    return this.#describe('actpass', this.#offered, []);
  }

  /** Takes the publisher's answer and the name. Throws ProtocolError for an unusable answer, and IngestRefused. */
  answered(text: string): void {
    this.#begin(readIngestAnswer(parseSessionDescription(text), this.#offered));
    this.#peer.announced(text);
  }

  /** Candidates of the publisher are only logged, because the publisher connects to us. */
  announced(candidates: string): void {
    this.#peer.announced(candidates);
  }

  /** Answers the publisher's offer and takes the name. Throws ProtocolError and IngestRefused. */
  accept(text: string): string {
    const { agreement, medias, left } = answerIngest(parseSessionDescription(text));
    this.#begin(agreement);
    if (left.length > 0) {
      const taken = 'WebRTC can bring H.264, H.265, VP8, AV1 and Opus';
      this.#logger.warn({ unsupported: left }, `tracks left out: ${left.join('; ')}; ${taken}`);
    }
    this.#peer.announced(text);
    return this.#describe('passive', medias, this.candidates());
  }

  unreached(attempts: string): void {
    this.#logger.info({}, `no packet of the publisher has arrived yet${attempts}`);
  }

  connected(): void {
    this.#logger.info({ path: this.#peer.place }, 'publisher connected over WebRTC');
    if (!this.#ended) this.#options.onConnected(this);
  }

  rtp(packet: Buffer, at: number): void {
    if (this.#ended) return;
    // No closure: hundreds of packets come a second.
    try {
      this.#feed?.rtp(packet, at);
    } catch (error) {
      this.#failed(error);
    }
  }

  rtcp(packet: Buffer): void {
    this.#guarded(() => this.#feed?.rtcp(packet));
  }

  /** Does the due work; called every 20 ms or so. */
  tick(): void {
    this.#guarded(() => this.#feed?.tick());
  }

  closed(reason: string): void {
    this.#end({ code: reason === PEER_LEFT ? 'peer-left' : 'timeout', detail: reason });
    this.#options.onEnded(reason);
  }

  /** Ends stream and session; `onEnded` is not called. Idempotent. */
  close(detail: string, code: CloseReason['code'] = 'peer-left'): void {
    this.#end({ code, detail });
  }

  #begin(agreement: IngestAgreement): void {
    if (this.#feed !== null) throw new ProtocolError('WEBRTC_ANSWER', 'the session has its answer already');
    const { clock, settings, capabilities } = this.#options;
    const stream = this.#openStream();
    this.#stream = stream;
    this.#feed = new IngestFeed({
      stream,
      agreement,
      capabilities: readCapabilities(capabilities),
      clock,
      keyframeInterval: settings.keyframeInterval,
      send: (packet) => this.#peer.sendRtcp(packet),
      onStarted: (tracks) => this.#logger.info({ tracks }, 'WebRTC stream started'),
      onReordered: (track) => this.#warnOfReordering(track),
    });
    this.#peer.start({ plan: { cname: this.#cname, slots: [] }, ...agreement.security });
    this.#logger.info({ medias: agreement.medias.map(({ kind }) => kind) }, 'WebRTC stream published');
  }

  #openStream(): IngestStream {
    const { target, gate, client } = this.#options;
    return gate.openIngest(placeOf(target), {
      streamName: target.stream,
      provider: ProviderKind.WEBRTC,
      sourceType: SourceType.WEBRTC,
      sourceUrl: `WebRTC://${client}`,
      client,
      onClose: (reason) => this.#endedByServer(reason),
      onKeyframeWanted: (trackId) => this.#feed?.tracks[trackId]?.requestKeyframe(),
    });
  }

  #describe(setup: 'actpass' | 'passive', medias: readonly LocalMedia[], candidates: readonly string[]): string {
    return serializeDescription({
      credentials: this.#peer.credentials,
      fingerprint: this.#options.transport.fingerprint,
      setup,
      candidates,
      cname: this.#cname,
      streamId: this.#streamId,
      medias,
    });
  }

  #warnOfReordering(track: IngestTrack): void {
    this.#logger.warn(
      { track: track.id, codec: track.codec },
      'the publisher sends B-frames, which WebRTC players cannot show: switch them off in the encoder (OBS: bframes=0 or profile baseline; ' +
        'ffmpeg: -bf 0; GStreamer x264enc: bframes=0)',
    );
  }

  #guarded(work: () => void): void {
    if (this.#ended) return;
    try {
      work();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** The media cannot be played, or the fault is ours: either ends this session and no other. */
  #failed(error: unknown): void {
    const detail = faultDetail(error, this.#logger, 'a WebRTC publication');
    this.#end({ code: 'peer-error', detail });
    this.#options.onEnded(detail);
  }

  #endedByServer(reason: CloseReason): void {
    this.#end(reason);
    this.#options.onEnded(reason.detail);
  }

  #end(reason: CloseReason): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#peer.close();
    this.#stream?.close(reason);
    this.#report(reason);
    this.#options.onClosed(this);
  }

  #report({ code, detail }: CloseReason): void {
    if (this.#feed === null) {
      this.#logger.debug({ code }, `a WebRTC publication was not begun: ${detail}`);
      return;
    }
    const tracks = this.#feed.tracks.map((track) => ({ codec: track.codec, layer: track.layer, ...track.received, ...track.counters }));
    this.#logger.info(
      {
        code,
        durationMs: Math.round(this.#options.clock.monotonic() - this.#openedAt),
        ...this.#feed.counters,
        refused: this.#peer.counters?.refused ?? 0,
        tracks,
      },
      `WebRTC publication closed: ${detail}${this.#peer.attempts}`,
    );
  }
}

function placeOf({ vhost, app }: StreamTarget): IngestTarget {
  return { vhost, host: vhost, app };
}
