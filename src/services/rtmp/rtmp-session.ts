/** The commands of a connected publisher, step by step: connect, createStream, publish, media, unpublish. */
import {
  type AccessRequest,
  type Admitted,
  type Gatekeeper,
  OPEN_GATE,
  shownReason,
  type Verdict,
  whenJudged,
} from '../../access/access-check.ts';
import { readNewUrl } from '../../access/new-url.ts';
import type { RtmpProviderConfig } from '../../config/schema/providers.ts';
import { parseMetadata } from '../../containers/flv/metadata.ts';
import { type CloseReason, type IngestGate, IngestRefused, type IngestStream, type SourceTrack } from '../../core/ingest.ts';
import { ProviderKind, SourceType } from '../../core/kinds.ts';
import { Urgency } from '../../core/urgency.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { ClientEnd } from '../../wire/proxy/proxy-header.ts';
import { readAggregate } from '../../wire/rtmp/aggregate.ts';
import { AmfObject, type AmfValue } from '../../wire/rtmp/amf.ts';
import { parseCommand, parseDataEvent, type RtmpCommand, type RtmpDataEvent } from '../../wire/rtmp/command.ts';
import { ACKNOWLEDGEMENT_WINDOW } from '../../wire/rtmp/connection-control.ts';
import { controlMessage, peerBandwidthMessage, userControlMessage } from '../../wire/rtmp/control.ts';
import { MessageType, PeerBandwidthLimit, type RtmpMessage, UserControlEvent } from '../../wire/rtmp/message.ts';
import { parseStreamKey, type RtmpUrl } from '../../wire/rtmp/rtmp-url.ts';
import { eventsOf } from './event-generator.ts';
import { PublishFeed, type PublishFeedCounters } from './publish-feed.ts';
import { connectUrl, type LocalEnd, type PublishTarget, publishTarget, redirected } from './publish-target.ts';
import {
  connectRefused,
  connectResult,
  createStreamResult,
  fcPublishStatus,
  MESSAGE_STREAM_ID,
  publishStarted,
  type RefusalStatus,
  refused,
} from './replies.ts';
import type { RtmpLimits, RtmpTimeouts } from './rtmp-options.ts';

/** The connection as its session sees it. */
export interface SessionLink {
  readonly local: LocalEnd;
  /** Shown as the URL of the source, `TCP://address:port`. */
  readonly sourceUrl: string;
  /** Address of the peer. */
  readonly client: ClientEnd;
  send(message: RtmpMessage): void;
  /** Announces the length of chunks to the peer, and uses it. */
  setChunkSize(size: number): void;
  /** The publication is open: media messages may be as long as their limit. */
  onPublishing(vhost: string, target: PublishTarget): void;
  /** The core knows the tracks. */
  onStarted(tracks: readonly SourceTrack[]): void;
  /** The publisher ended the publication and may begin another. */
  onUnpublished(counters: PublishFeedCounters): void;
  /** A message cannot be read. Throws `ProtocolError` when there are too many such messages. */
  onMalformed(what: string): void;
  /** Once for each codec that cannot be carried; `what` is the track. */
  onUnsupported(what: 'video' | 'audio', codec: string): void;
  /** Leaves the peer's data in the network until `resumeReading`. */
  pauseReading(): void;
  resumeReading(): void;
  /** Reads at once, unless reading is paused. */
  endRest(): void;
  /** Cuts the connection at once. */
  close(reason: CloseReason): void;
  /** Ends the connection once the sent data has left. */
  closeAfterFlush(reason: CloseReason): void;
  /** Handles an exception from outside of a message: ends the connection as if a message had thrown it. */
  failed(error: unknown): void;
  /** Logs a refusal with its reason. */
  onRefused(refusal: SessionRefusal): void;
}

/** Why a publisher or viewer was refused. */
export interface SessionRefusal {
  readonly who: 'publisher' | 'viewer';
  readonly code: string;
  readonly reason: string;
  readonly app?: string;
  readonly stream?: string;
}

/** Error texts for an untrusted client: they reveal nothing about other clients. */
export const RTMP_REFUSALS: Readonly<Record<IngestRefused['code'], readonly [RefusalStatus, (target: PublishTarget) => string]>> = {
  'no-virtual-host': ['NetConnection.Connect.Rejected', ({ host }) => `There is no virtual host for '${host}'.`],
  'no-application': ['NetConnection.Connect.InvalidApp', ({ app }) => `There is no application '${app}'.`],
  'provider-disabled': ['NetConnection.Connect.InvalidApp', ({ app }) => `Application '${app}' takes no RTMP.`],
  'duplicate-name': ['NetStream.Publish.BadName', ({ stream }) => `Stream '${stream}' is already being published.`],
  'invalid-name': ['NetStream.Publish.BadName', () => 'The stream key is no name: it must not contain / : ? # or blanks.'],
  full: ['NetStream.Publish.Rejected', ({ app }) => `Application '${app}' has all the streams it may have.`],
  'shutting-down': ['NetStream.Publish.Rejected', () => 'The server is shutting down.'],
};
/** Error texts for a publisher whose stream the core ends, by reason; other reasons just disconnect. */
const SENT_AWAY: Readonly<Partial<Record<CloseReason['code'], string>>> = {
  denied: 'The stream is not allowed here.',
  'no-room': 'Too many streams are beginning at once: try again.',
};
/** Long enough for most keyframes. Some encoders, such as ffmpeg, use the chunk size of the server for their own chunks. */
const OWN_CHUNK_SIZE = 60_000;
const NO_STREAM_KEY = 'There is no stream key: publish to rtmp://HOST/APP/KEY, or fill in the stream key of your encoder.';
const NO_APPLICATION = 'The URL names no application: it must be rtmp://HOST/APP/KEY.';
const NOT_PLAYED = 'RTMP is for publishing only: play this stream by LL-HLS, WebRTC or SRT.';

interface Publication {
  readonly admitted: Admitted;
  readonly ingest: IngestStream;
  readonly feed: PublishFeed;
  /** The key as the client wrote it in `publish`, without its query. */
  readonly keyName: string;
}

/** A `publish` that waits for its verdict. Reading is paused meanwhile, but its read may have brought more messages. */
interface Judging {
  readonly cancel: () => void;
  readonly messages: RtmpMessage[];
}

/** Processes the messages of one connection. Throws `ProtocolError` for messages that no publisher may send. */
export class RtmpSession {
  /** Well-formed data and command messages without a use here. */
  ignored = 0;
  /** Data messages that could not be read. */
  malformedData = 0;
  readonly #gate: IngestGate;
  readonly #access: Gatekeeper;
  readonly #link: SessionLink;
  readonly #limits: RtmpLimits;
  readonly #timeouts: RtmpTimeouts;
  readonly #clientId: number;
  readonly #enhanced: boolean;
  #url: RtmpUrl | null = null;
  #announcedKey = '';
  #uncountedBytes = 0;
  #publication: Publication | null = null;
  #judging: Judging | null = null;
  #ended = false;

  constructor(options: {
    gate: IngestGate;
    access?: Gatekeeper | undefined;
    link: SessionLink;
    limits: RtmpLimits;
    timeouts: RtmpTimeouts;
    /** Enhanced RTMP is taken. */
    enhanced: boolean;
    clientId: number;
  }) {
    this.#gate = options.gate;
    this.#access = options.access ?? OPEN_GATE;
    this.#link = options.link;
    this.#limits = options.limits;
    this.#timeouts = options.timeouts;
    this.#clientId = options.clientId;
    this.#enhanced = options.enhanced;
  }

  /** The running publication, or null. */
  get feed(): PublishFeed | null {
    return this.#publication?.feed ?? null;
  }

  /** The admission is pending: the peer's bytes stay unread, so its silence means nothing. */
  get judging(): boolean {
    return this.#judging !== null;
  }

  /** Takes any message but protocol control. Does nothing after `end`. */
  receive(message: RtmpMessage): void {
    if (this.#ended) return;
    if (this.#judging !== null) {
      this.#judging.messages.push(message);
      return;
    }
    switch (message.typeId) {
      case MessageType.AUDIO:
        this.#publication?.feed.pushAudio(message.payload, message.timestamp);
        break;
      case MessageType.VIDEO:
        this.#publication?.feed.pushVideo(message.payload, message.timestamp);
        break;
      case MessageType.AGGREGATE:
        this.#receiveAggregate(message);
        break;
      case MessageType.COMMAND_AMF0:
      case MessageType.COMMAND_AMF3:
        this.#runCommand(parseCommand(message, this.#limits.amf));
        break;
      case MessageType.DATA_AMF0:
      case MessageType.DATA_AMF3:
        this.#receiveData(message);
        break;
      default:
        this.ignored += 1;
    }
  }

  /** Urgency of the next data: at once, until the stream has started. */
  get urgency(): Urgency {
    const publication = this.#publication;
    return publication?.feed.started === true ? publication.ingest.urgency : Urgency.REAL_TIME;
  }

  /** When the next data is needed at the latest, if not at once: see `IngestStream`. */
  get neededAt(): number {
    return this.#publication?.ingest.neededAt ?? Number.NEGATIVE_INFINITY;
  }

  /** Counts received bytes for their stream; bytes before `publish` count for the next stream. */
  countBytes(bytes: number): void {
    if (this.#publication === null) this.#uncountedBytes += bytes;
    else this.#publication.ingest.countBytes(bytes);
  }

  /** Ends the publication because the connection ends. Idempotent. */
  end(reason: CloseReason): PublishFeedCounters | null {
    this.#ended = true;
    const publication = this.#publication;
    this.#publication = null;
    this.#judging?.cancel();
    this.#judging = null;
    publication?.admitted.close();
    publication?.ingest.close(reason);
    return publication?.feed ?? null;
  }

  #receiveAggregate(message: RtmpMessage): void {
    readAggregate(message, (inner) => {
      if (inner.typeId === MessageType.AGGREGATE) throw new ProtocolError('RTMP_AGGREGATE', 'aggregate inside an aggregate');
      this.receive(inner);
    });
  }

  #runCommand(command: RtmpCommand): void {
    switch (command.name) {
      case 'connect':
        this.#connect(command);
        break;
      case 'createStream':
        this.#link.send(createStreamResult(command.transactionId));
        break;
      case 'FCPublish':
        this.#announcedKey = text(command.args[1]);
        this.#link.send(fcPublishStatus(this.#clientId));
        break;
      case 'publish':
        this.#publish(text(command.args[1]));
        break;
      case 'play':
      case 'play2':
        this.#refusePlayer(text(command.args[1]));
        break;
      case 'FCUnpublish':
      case 'unpublish':
      case 'closeStream':
      case 'deleteStream':
        this.#unpublish(command);
        break;
      default:
        this.ignored += 1;
    }
  }

  #connect(command: RtmpCommand): void {
    if (this.#url !== null) throw new ProtocolError('RTMP_CONNECT', 'connect came twice');
    const fields = command.args[0] instanceof AmfObject ? command.args[0] : new AmfObject();
    const url = connectUrl({ tcUrl: fields.get('tcUrl'), app: fields.get('app') }, this.#link.local);
    if (url === null) {
      this.#link.onRefused({
        who: 'publisher',
        code: 'no-application',
        reason: 'connect names no application: neither tcUrl nor app can be read',
      });
      this.#link.send(connectRefused(command.transactionId, NO_APPLICATION));
      this.#link.closeAfterFlush({ code: 'denied', detail: 'connect without an application' });
      return;
    }
    this.#url = url;
    const objectEncoding = fields.get('objectEncoding');
    this.#link.send(controlMessage(MessageType.WINDOW_ACK_SIZE, ACKNOWLEDGEMENT_WINDOW));
    this.#link.send(peerBandwidthMessage(ACKNOWLEDGEMENT_WINDOW, PeerBandwidthLimit.DYNAMIC));
    this.#link.send(userControlMessage(UserControlEvent.STREAM_BEGIN, 0));
    this.#link.send(
      connectResult({
        transactionId: command.transactionId,
        clientId: this.#clientId,
        objectEncoding: typeof objectEncoding === 'number' ? objectEncoding : 0,
        enhanced:
          this.#enhanced && ['fourCcList', 'videoFourCcInfoMap', 'audioFourCcInfoMap', 'capsEx'].some((name) => fields.fields.has(name)),
      }),
    );
    this.#link.setChunkSize(OWN_CHUNK_SIZE);
  }

  #publish(streamKey: string): void {
    if (this.#url === null) throw new ProtocolError('RTMP_PUBLISH', 'publish came before connect');
    if (this.#publication !== null) throw new ProtocolError('RTMP_PUBLISH', 'publish came while publishing');
    const key = streamKey === '' ? this.#announcedKey : streamKey;
    const target = publishTarget(this.#url, key);
    if (target === null) {
      const { app } = this.#url;
      this.#link.onRefused({ who: 'publisher', code: 'no-stream-key', reason: `there is no stream key behind rtmp://…/${app}`, app });
      this.#link.send(refused('NetStream.Publish.BadName', NO_STREAM_KEY));
      this.#link.closeAfterFlush({ code: 'denied', detail: 'publish without a stream name' });
      return;
    }
    const { address, port } = this.#link.client;
    const request: AccessRequest = {
      direction: 'incoming',
      protocol: 'rtmp',
      url: target.url,
      client: { address, port, realIp: address },
    };
    const cancel = whenJudged(
      this.#access.admit({ host: target.host, app: target.app, stream: target.stream }, request),
      (verdict) => this.#judged(verdict, target, key),
      (error) => this.#link.failed(error),
    );
    if (cancel === null) return;
    this.#judging = { cancel, messages: [] };
    this.#link.pauseReading();
  }

  #judged(verdict: Verdict, target: PublishTarget, key: string): void {
    const { messages = [] } = this.#judging ?? {};
    const hasWaited = this.#judging !== null;
    this.#judging = null;
    if (verdict.admitted) {
      const { newUrl } = verdict;
      const other = newUrl === undefined ? null : readNewUrl(newUrl);
      this.#begin(verdict, newUrl === undefined || other === null ? target : redirected(other, newUrl), key);
    } else {
      const { code, reason } = verdict;
      this.#link.send(refused('NetStream.Publish.Rejected', `Access denied: ${shownReason(verdict)}.`));
      this.#link.closeAfterFlush({ code: 'denied', detail: `access denied, ${code}: ${reason}` });
    }
    if (!hasWaited || this.#publication === null) return;
    // Each of the messages may pause reading again.
    this.#link.resumeReading();
    for (const message of messages) this.receive(message);
  }

  #begin(admitted: Admitted, target: PublishTarget, key: string): void {
    let ingest: IngestStream | null = null;
    try {
      ingest = this.#openIngest(target);
    } finally {
      if (ingest === null) admitted.close();
    }
    if (ingest === null) return;
    const feed = new PublishFeed({
      stream: ingest,
      limits: this.#limits,
      timeouts: this.#timeouts,
      enhanced: this.#enhanced,
      onStarted: (tracks) => this.#link.onStarted(tracks),
      onMalformed: (what) => this.#link.onMalformed(what),
      onUnsupported: (what, codec) => this.#link.onUnsupported(what, codec),
    });
    this.#publication = { admitted, ingest, feed, keyName: parseStreamKey(key).name };
    admitted.begin((reason) => {
      this.#link.send(refused('NetStream.Publish.Rejected', `The publication is over: ${reason}.`));
      this.#link.closeAfterFlush({ code: 'expired', detail: reason });
    });
    ingest.countBytes(this.#uncountedBytes);
    this.#uncountedBytes = 0;
    this.#link.onPublishing(ingest.vhost, target);
    this.#link.send(userControlMessage(UserControlEvent.STREAM_BEGIN, MESSAGE_STREAM_ID));
    this.#link.send(publishStarted(this.#clientId));
  }

  /** The reference server sends no status, but a closed connection alone does not tell the user of the encoder why. */
  #openIngest(target: PublishTarget): IngestStream | null {
    try {
      return this.#gate.openIngest(
        { host: target.host, app: target.app },
        {
          streamName: target.stream,
          provider: ProviderKind.RTMP,
          sourceType: SourceType.RTMP,
          sourceUrl: this.#link.sourceUrl,
          client: this.#link.client.address,
          onClose: (reason) => this.#sendAway(reason, target),
          onCongested: () => this.#link.pauseReading(),
          onRelieved: () => this.#link.resumeReading(),
          onWatched: () => this.#link.endRest(),
        },
      );
    } catch (error) {
      if (!(error instanceof IngestRefused)) throw error;
      const where = `${target.host}/${target.app}/${target.stream}`;
      const [status, description] = RTMP_REFUSALS[error.code];
      const { app, stream } = target;
      this.#link.onRefused({ who: 'publisher', code: error.code, reason: error.message, app, stream });
      this.#link.send(refused(status, description(target)));
      this.#link.closeAfterFlush({ code: 'denied', detail: `${where} refused, ${error.code}: ${error.message}` });
      return null;
    }
  }

  /**
   * The core disconnects the peer, which gets the reason if it did nothing wrong. The detail may name servers of the operator, so only the
   * log has it.
   */
  #sendAway(reason: CloseReason, { app, stream }: PublishTarget): void {
    const description = SENT_AWAY[reason.code];
    if (description === undefined) {
      this.#link.close(reason);
      return;
    }
    this.#link.onRefused({ who: 'publisher', code: reason.code, reason: reason.detail, app, stream });
    this.#link.send(refused('NetStream.Publish.Rejected', description));
    this.#link.closeAfterFlush(reason);
  }

  #refusePlayer(name: string): void {
    const { app = '' } = this.#url ?? {};
    const stream = this.#url?.stream || parseStreamKey(name).name;
    this.#link.onRefused({ who: 'viewer', code: 'rtmp-play', reason: `RTMP is not served to players: '${app}/${stream}'`, app, stream });
    this.#link.send(refused('NetStream.Play.Failed', NOT_PLAYED));
    this.#link.closeAfterFlush({ code: 'denied', detail: 'RTMP is not served to players' });
  }

  #unpublish(command: RtmpCommand): void {
    const publication = this.#publication;
    if (publication === null || !meansPublication(command, publication.keyName)) {
      this.ignored += 1;
      return;
    }
    this.#publication = null;
    publication.admitted.close();
    publication.ingest.close({ code: 'peer-left', detail: command.name });
    this.#link.onUnpublished(publication.feed);
  }

  /** Encoders send malformed metadata: it is ignored, and the stream continues. */
  #receiveData(message: RtmpMessage): void {
    try {
      const event = parseDataEvent(message, this.#limits.amf);
      const metadata = event.name === '@setDataFrame' && event.args[0] === 'onMetaData' ? event.args[1] : event.args[0];
      const isMetadata = event.name === 'onMetaData' || event.name === '@setDataFrame';
      if (isMetadata && metadata instanceof AmfObject) this.feed?.describe(parseMetadata(metadata.fields));
      if (!this.#generate(event, message.timestamp) && !isMetadata) this.ignored += 1;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.malformedData += 1;
      this.#link.onMalformed(`${error.code}: ${error.message}`);
    }
  }

  /** Makes the events that the application wants of a data message; true when it made some. */
  #generate(message: RtmpDataEvent, wireTimestamp: number): boolean {
    const publication = this.#publication;
    if (publication === null) return false;
    const rules = rulesOf(publication.ingest);
    if (rules.length === 0) return false;
    const events = eventsOf(rules, message, publication.feed.timeOf(wireTimestamp) / 1000);
    for (const event of events) publication.ingest.pushEvent(event);
    return events.length > 0;
  }
}

/** The rules of the application; none where it has no such setting. */
function rulesOf({ settings }: IngestStream): Parameters<typeof eventsOf>[0] {
  return (settings as Partial<RtmpProviderConfig> | undefined)?.eventGenerator?.event ?? [];
}

/** `deleteStream` carries a stream number, `FCUnpublish` a stream key, `closeStream` nothing. */
function meansPublication(command: RtmpCommand, keyName: string): boolean {
  const subject = command.args[1];
  if (command.name === 'deleteStream') return typeof subject !== 'number' || subject === MESSAGE_STREAM_ID;
  return typeof subject !== 'string' || subject === '' || parseStreamKey(subject).name === keyName;
}

function text(value: AmfValue): string {
  return typeof value === 'string' ? value : '';
}
