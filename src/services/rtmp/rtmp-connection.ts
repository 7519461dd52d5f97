/** One accepted socket: handshake, chunk streams, acknowledgements, deadlines, and the log of its life. */
import type { Socket } from 'node:net';
import type { Gatekeeper } from '../../access/access-check.ts';
import { unsupportedCodecName } from '../../containers/flv/fourcc.ts';
import type { CloseReason, IngestGate, SourceTrack } from '../../core/ingest.ts';
import { Urgency } from '../../core/urgency.ts';
import { Rest, type SocketReader } from '../../native/tcp/socket-reader.ts';
import { hostPort, plainAddress } from '../../util/client-address.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { faultDetail } from '../../util/message-of.ts';
import type { Newcomer, Turns } from '../../util/newcomer-turns.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { logRefused } from '../../util/refused.ts';
import { TokenBucket } from '../../util/token-bucket.ts';
import { answerToBrowser, beginsHttp, beginsTls, spokeTls } from '../../util/wrong-protocol.ts';
import type { ClientEnd } from '../../wire/proxy/proxy-header.ts';
import { ChunkReader, type ChunkReaderLimits } from '../../wire/rtmp/chunk-reader.ts';
import { ChunkWriter } from '../../wire/rtmp/chunk-writer.ts';
import { ConnectionControl } from '../../wire/rtmp/connection-control.ts';
import { controlMessage } from '../../wire/rtmp/control.ts';
import { ServerHandshake } from '../../wire/rtmp/handshake.ts';
import { MessageType, type RtmpMessage } from '../../wire/rtmp/message.ts';
import type { PublishFeedCounters } from './publish-feed.ts';
import { ENHANCED } from './publish-feed.ts';
import type { PublishTarget } from './publish-target.ts';
import type { RtmpLimits, RtmpTimeouts } from './rtmp-options.ts';
import { RtmpSession, type SessionLink } from './rtmp-session.ts';

const PAGE = answerToBrowser('This port speaks RTMP: encoders publish to it, and there is no page.');
const KEEP_ALIVE_DELAY_MS = 10_000;
/** A peer that wants acknowledgements more often than this, bytes, may stop sending until it gets them. */
const MIN_RESTING_WINDOW = 512 * 1024;
/** Maximum of unfinished messages of full length before a peer publishes. */
const MAX_UNPUBLISHED_MESSAGES = 4;
/** Before `publish`, at most this many bytes of a message are allocated in advance: commands are shorter. */
const MAX_UNPUBLISHED_TRUST = 4096;
/** Malformed messages of this many seconds may come at once, because an encoder may begin with an unreadable track. */
const MALFORMED_SECONDS = 5;

/** By the urgency of the next data. */
const RESTS: Readonly<Record<Urgency, Rest>> = {
  [Urgency.NONE]: Rest.LONGEST,
  [Urgency.BATCHED]: Rest.LONG,
  [Urgency.LOW_LATENCY]: Rest.SHORT,
  [Urgency.REAL_TIME]: Rest.NONE,
};

/** Dependencies of each connection. */
export interface RtmpConnectionOptions {
  readonly id: number;
  /** As the server accepted it, paused. */
  readonly socket: Socket;
  /** Address of the peer, which a proxy may have told. */
  readonly client: ClientEnd;
  readonly reader: SocketReader;
  readonly scheme: 'rtmp' | 'rtmps';
  readonly gate: IngestGate;
  /** Absent: every client may publish. */
  readonly access?: Gatekeeper | undefined;
  readonly turns: Turns;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Monotonic time when the socket was accepted, before a TLS handshake. Absent: now. */
  readonly acceptedAt?: number | undefined;
  readonly limits: RtmpLimits;
  readonly timeouts: RtmpTimeouts;
  /** Enhanced RTMP is accepted. */
  readonly enhanced: boolean;
  /** The peer speaks another protocol; `why` is a fixed sentence. The connection closes by itself. */
  readonly onForeign?: (why: string) => void;
  /** The socket is gone. Called once. */
  readonly onClosed: (connection: RtmpConnection) => void;
}

/** Owns its socket. Every fault of the peer ends in `close` with a reason, never in an exception. */
export class RtmpConnection {
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #limits: RtmpLimits;
  readonly #timeouts: RtmpTimeouts;
  readonly #handshake = new ServerHandshake();
  readonly #reader: ChunkReader;
  readonly #writer = new ChunkWriter();
  readonly #control: ConnectionControl;
  readonly #session: RtmpSession;
  readonly #openedAt: number;
  readonly #acceptedAt: number;
  readonly #connectionLogger: Logger;
  /** Names the stream while there is one. */
  #logger: Logger;
  #closeReason: CloseReason | null = null;
  #lingerUntil: number | null = null;
  #publishedAt: number | null = null;
  #unpublishedSince: number;
  #seenBytes = 0;
  #bytesSeenAt: number;
  #seenMessages = 0;
  #messagesSeenAt = 0;
  /** An acknowledgement waits for its time. */
  #acknowledging = false;
  readonly #turns: Turns;
  readonly #client: string;
  readonly #onForeign: ((why: string) => void) | undefined;
  /** Data from before `publish` that waits for its turn; nothing more is read meanwhile. */
  #waiting: Newcomer | null = null;
  /** The peer has left, and the end of its stream waits for its turn. */
  #leaving = false;
  /** The core has paused the publisher. */
  #congested = false;
  readonly #discards: TokenBucket;
  readonly #malformed: TokenBucket;

  constructor(options: RtmpConnectionOptions) {
    const { limits } = options;
    this.#turns = options.turns;
    this.#client = options.client.address;
    this.#onForeign = options.onForeign;
    this.#clock = options.clock;
    this.#socket = options.reader.adopt(
      options.socket,
      (data, length) => this.#onData(data, length),
      () => this.#neededIn(),
    );
    this.#limits = limits;
    this.#timeouts = options.timeouts;
    this.#openedAt = this.#clock.monotonic();
    this.#acceptedAt = options.acceptedAt ?? this.#openedAt;
    this.#unpublishedSince = this.#openedAt;
    this.#bytesSeenAt = this.#openedAt;
    const peer = hostPort(options.client.address, options.client.port);
    this.#connectionLogger = options.logger.child({ session: options.id, peer });
    this.#logger = this.#connectionLogger;
    this.#discards = new TokenBucket({ burst: limits.discardsPerSecond, perSecond: limits.discardsPerSecond });
    this.#malformed = new TokenBucket({ burst: MALFORMED_SECONDS * limits.malformedPerSecond, perSecond: limits.malformedPerSecond });
    this.#reader = new ChunkReader({
      onMessage: (message) => this.#receive(message),
      onDiscard: () => this.#countDiscard(),
      limits: unpublishedLimits(limits),
    });
    this.#control = new ConnectionControl({ reader: this.#reader, send: (message) => this.#send(message) });
    this.#session = new RtmpSession({
      gate: options.gate,
      access: options.access,
      limits,
      timeouts: options.timeouts,
      enhanced: options.enhanced,
      clientId: options.id,
      link: this.#link({ scheme: options.scheme, peer, client: options.client, reader: options.reader }),
    });
    this.#listen(options.onClosed);
    this.#logger.info({ scheme: options.scheme }, 'RTMP connection opened');
  }

  get closed(): boolean {
    return this.#closeReason !== null;
  }

  /** Bytes received, handshake included. */
  get bytesIn(): number {
    return this.#control.bytesIn;
  }

  get publishing(): boolean {
    return this.#session.feed !== null;
  }

  /** Cuts the connection and ends its stream. Idempotent. */
  close(reason: CloseReason): void {
    if (this.#finish(reason)) this.#socket.destroy();
  }

  /** Like `close`, but also cuts a connection whose peer is still to receive the reason. Idempotent. */
  cut(reason: CloseReason): void {
    this.#finish(reason);
    this.#socket.destroy();
  }

  /** Applies every deadline; called regularly by the provider. */
  checkDeadlines(): void {
    try {
      this.#checkDeadlines();
    } catch (error) {
      this.#closeOnError(error);
    }
  }

  #checkDeadlines(): void {
    const now = this.#clock.monotonic();
    if (this.#closeReason !== null) {
      if (this.#lingerUntil !== null && now >= this.#lingerUntil) this.#socket.destroy();
      return;
    }
    const isSilent = this.bytesIn === this.#seenBytes && this.#waiting === null && !this.#session.judging;
    if (!isSilent) {
      this.#seenBytes = this.bytesIn;
      this.#bytesSeenAt = now;
    }
    const overdue = this.#publishedAt === null ? this.#overdueUnpublished(now) : this.#overduePublished(now, this.#publishedAt);
    if (overdue !== null) this.close({ code: 'timeout', detail: overdue });
    // A peer that announced no window and keeps sending needs no acknowledgements, and leaves them unread, as ffmpeg does: closing with
    // unread data makes its system discard what it has not sent yet.
    else if (isSilent || this.#control.windowTold) this.#acknowledgeSoon();
  }

  #overdueUnpublished(now: number): string | null {
    const { handshake, unpublishedSilence, publish } = this.#timeouts;
    if (!this.#handshake.done && now - this.#acceptedAt >= handshake) return `handshake not finished after ${handshake} ms`;
    if (now - this.#bytesSeenAt >= unpublishedSilence) return `silent for ${unpublishedSilence} ms without publishing`;
    return now - this.#unpublishedSince >= publish ? `no publish within ${publish} ms` : null;
  }

  #overduePublished(now: number, publishedAt: number): string | null {
    const feed = this.#session.feed;
    if (feed === null) return null;
    feed.checkStart(now);
    const { firstTrack, packetSilence } = this.#timeouts;
    if (!feed.started && now - publishedAt >= firstTrack) return `no usable track within ${firstTrack} ms`;
    if (feed.messages !== this.#seenMessages) {
      this.#seenMessages = feed.messages;
      this.#messagesSeenAt = now;
    }
    return packetSilence > 0 && now - this.#messagesSeenAt >= packetSilence ? `no media for ${packetSilence} ms` : null;
  }

  #listen(onClosed: (connection: RtmpConnection) => void): void {
    const socket = this.#socket;
    socket.setNoDelay(true);
    socket.on('end', () => this.#leave('connection ended by the peer'));
    socket.on('error', (error: NodeJS.ErrnoException) => this.#leave(error.code ?? error.message));
    socket.on('close', () => {
      this.#leave('connection closed');
      onClosed(this);
    });
  }

  /** The peer has left. The end of a stream waits for its turn, because it is expensive and many peers may leave at once. */
  #leave(detail: string): void {
    if (this.#closeReason !== null || this.#leaving) return;
    this.#leaving = true;
    const close = (): void => this.close({ code: 'peer-left', detail });
    if (this.publishing)
      this.#turns.take({ client: this.#client, enter: close, failed: (error) => this.#closeOnError(error), refused: close });
    else close();
  }

  #link(end: { scheme: 'rtmp' | 'rtmps'; peer: string; client: ClientEnd; reader: SocketReader }): SessionLink {
    const socket = this.#socket;
    return {
      local: { host: plainAddress(socket.localAddress ?? ''), port: socket.localPort ?? 0, scheme: end.scheme },
      sourceUrl: `TCP://${end.peer}`,
      client: end.client,
      send: (message) => this.#send(message),
      setChunkSize: (size) => {
        this.#send(controlMessage(MessageType.SET_CHUNK_SIZE, size));
        this.#writer.setChunkSize(size);
      },
      onPublishing: (vhost, target) => this.#onPublishing(vhost, target),
      onStarted: (tracks) => this.#logger.info({ tracks: tracks.map(trackLabel) }, 'RTMP stream started'),
      onUnpublished: (counters) => this.#onUnpublished(counters),
      onMalformed: (what) => this.#countMalformed(what),
      onUnsupported: (what, codec) => this.#tellUnsupported(what, codec),
      pauseReading: () => {
        this.#congested = true;
        socket.pause();
      },
      resumeReading: () => {
        this.#congested = false;
        socket.resume();
      },
      endRest: () => end.reader.endRest(socket),
      close: (reason) => this.close(reason),
      closeAfterFlush: (reason) => this.#closeAfterFlush(reason),
      failed: (error) => this.#closeOnError(error),
      onRefused: ({ who, ...refusal }) => logRefused(this.#connectionLogger, who, refusal),
    };
  }

  /** Returns how long the next data can wait. */
  #onData(data: Buffer, length: number): Rest {
    if (this.#closeReason !== null) return Rest.NONE;
    if (this.publishing) return this.#take(data, length);
    let held: Buffer | null = null;
    let isIn = false;
    let rest: Rest = Rest.NONE;
    const newcomer: Newcomer = {
      client: this.#client,
      enter: () => {
        isIn = true;
        rest = this.#take(held ?? data, length);
        if (held !== null) this.#goOn();
      },
      failed: (error) => this.#closeOnError(error),
      refused: (detail) => this.close({ code: 'denied', detail }),
    };
    this.#turns.take(newcomer);
    if (isIn || this.closed) return rest;
    // The reader will overwrite the buffer.
    held = Buffer.from(data.subarray(0, length));
    this.#waiting = newcomer;
    this.#socket.pause();
    return Rest.NONE;
  }

  #refuseTls(): void {
    const why = spokeTls(this.#socket.localPort, 'RTMP');
    this.#onForeign?.(why);
    this.close({ code: 'peer-error', detail: why });
  }

  #goOn(): void {
    this.#waiting = null;
    if (!this.#congested && !this.closed) this.#socket.resume();
  }

  /** Returns how long the next data can wait. */
  #take(data: Buffer, length: number): Rest {
    // All answers to one read are sent in one write.
    this.#socket.cork();
    try {
      this.#control.countBytes(length);
      this.#session.countBytes(length);
      const isFirst = this.bytesIn === length;
      if (isFirst && beginsTls(data)) this.#refuseTls();
      else if (isFirst && beginsHttp(data.subarray(0, length))) {
        this.#socket.write(PAGE);
        this.#closeAfterFlush({ code: 'peer-error', detail: 'the peer speaks HTTP, not RTMP' });
      } else {
        const consumed = this.#handshake.done ? 0 : this.#shakeHands(data.subarray(0, length));
        this.#reader.push(data, consumed, length);
      }
    } catch (error) {
      this.#closeOnError(error);
    }
    this.#socket.uncork();
    if (this.#control.windowTold) this.#acknowledgeSoon();
    // A peer that waits for acknowledgements sends nothing meanwhile.
    if (this.#control.window < MIN_RESTING_WINDOW || this.#acknowledging) return Rest.NONE;
    return RESTS[this.#session.urgency];
  }

  /** Time until received data is needed, ms. */
  #neededIn(): number {
    try {
      return this.#session.neededAt - this.#clock.now();
    } catch (error) {
      this.#closeOnError(error);
      return 0;
    }
  }

  /**
   * Acknowledges when a turn of the event loop brought nothing more. The last bytes of a peer that has left must still be read: any write
   * makes its system answer with a reset, which discards data in flight, and a failed write ends reading as well.
   */
  #acknowledgeSoon(): void {
    if (this.#acknowledging || !this.#handshake.done || !this.#control.due) return;
    this.#acknowledging = true;
    let before = this.bytesIn;
    const look = (): void => {
      if (this.bytesIn !== before) {
        before = this.bytesIn;
        setImmediate(look);
        return;
      }
      this.#acknowledging = false;
      // A paused connection has more to read: `checkDeadlines` comes back to it.
      try {
        if (!this.#socket.isPaused()) this.#control.acknowledge();
      } catch (error) {
        this.#closeOnError(error);
      }
    };
    // After this turn, and then a whole one.
    setImmediate(() => setImmediate(look));
  }

  #countDiscard(): void {
    if (this.#discards.take(this.#clock.monotonic())) return;
    const { discardsPerSecond } = this.#limits;
    throw new ProtocolError('RTMP_DISCARDED', `more than ${discardsPerSecond} messages a second were begun and not finished`);
  }

  /** The encoder is not notified and continues: without this line nothing would explain the missing track. */
  #tellUnsupported(what: 'video' | 'audio', text: string): void {
    if (text === ENHANCED) {
      this.#logger.warn({ unsupported: text }, `the ${what} is left out: it needs ${text}, which is off (Modules/ERTMP)`);
      return;
    }
    const codec = unsupportedCodecName(what, text);
    const taken = what === 'video' ? 'H.264, H.265, VP8, VP9 and AV1' : 'AAC, MP3 and Opus';
    this.#logger.warn({ unsupported: codec }, `the ${what} is left out: ${codec} is not supported; RTMP can bring ${taken}`);
  }

  #countMalformed(what: string): void {
    if (this.#malformed.take(this.#clock.monotonic())) return;
    const { malformedPerSecond } = this.#limits;
    throw new ProtocolError('RTMP_MALFORMED', `more than ${malformedPerSecond} messages a second cannot be read, the last one: ${what}`);
  }

  #closeOnError(error: unknown): void {
    this.close({ code: 'peer-error', detail: faultDetail(error, this.#logger, 'RTMP connection') });
  }

  /** Returns how many bytes of `data` were part of the handshake. */
  #shakeHands(data: Buffer): number {
    const { consumed, reply } = this.#handshake.push(data);
    if (reply !== null) this.#write(reply);
    return consumed;
  }

  #receive(message: RtmpMessage): void {
    if (this.#closeReason !== null) return;
    if (!this.#control.receive(message)) this.#session.receive(message);
  }

  #send(message: RtmpMessage): void {
    if (this.#closeReason === null) this.#write(this.#writer.write(message));
  }

  #write(bytes: Buffer): void {
    this.#socket.write(bytes);
    const backlog = this.#socket.writableLength;
    if (backlog > this.#limits.writeBacklogBytes) {
      this.close({ code: 'peer-error', detail: `peer does not read: ${backlog} bytes wait to be sent` });
    }
  }

  #onPublishing(vhost: string, target: PublishTarget): void {
    this.#publishedAt = this.#clock.monotonic();
    this.#seenMessages = 0;
    this.#messagesSeenAt = this.#publishedAt;
    this.#reader.setLimits(this.#limits);
    // The system's probes find a peer that vanished, also where silence is allowed.
    this.#socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
    this.#logger = this.#connectionLogger.child({ vhost, app: target.app, stream: target.stream });
    this.#logger.info({}, 'RTMP stream published');
  }

  #onUnpublished(counters: PublishFeedCounters): void {
    this.#publishedAt = null;
    this.#bytesSeenAt = this.#clock.monotonic();
    // A publication without media does not extend the time to publish.
    if (counters.messages > 0) this.#unpublishedSince = this.#bytesSeenAt;
    this.#logger.info(summary(counters), 'RTMP stream unpublished');
    this.#logger = this.#connectionLogger;
  }

  #closeAfterFlush(reason: CloseReason): void {
    if (!this.#finish(reason)) return;
    this.#lingerUntil = this.#clock.monotonic() + this.#timeouts.linger;
    this.#socket.end();
  }

  /** Ends the session and logs the reason; false if the session had ended before. */
  #finish(reason: CloseReason): boolean {
    if (this.#closeReason !== null) return false;
    this.#closeReason = reason;
    if (this.#waiting !== null) this.#turns.leave(this.#waiting);
    this.#waiting = null;
    const counters = this.#session.end(reason);
    const duration = Math.round(this.#clock.monotonic() - this.#openedAt);
    this.#logger.info(
      {
        code: reason.code,
        detail: reason.detail,
        bytesIn: this.bytesIn,
        durationMs: duration,
        ...(counters === null ? {} : summary(counters)),
        ignored: this.#session.ignored,
        malformedData: this.#session.malformedData,
        discardedMessages: this.#reader.discarded,
      },
      'RTMP connection closed',
    );
    return true;
  }
}

/** A connection that has not published yet gets room for commands only. */
export function unpublishedLimits(limits: RtmpLimits): ChunkReaderLimits {
  const { controlBytes, chunkStreams } = limits;
  const pendingBytes = MAX_UNPUBLISHED_MESSAGES * controlBytes;
  return { mediaBytes: controlBytes, controlBytes, pendingBytes, chunkStreams, trustedBytes: MAX_UNPUBLISHED_TRUST };
}

function summary(counters: PublishFeedCounters): object {
  const { messages, malformed, unsupported, undecodable, firstFault } = counters;
  return { messages, malformed, unsupported, undecodable, ...(firstFault === null ? {} : { firstFault }) };
}

function trackLabel(track: SourceTrack): string {
  return track.type === 'data' ? `${track.id}:data` : `${track.id}:${track.codec}`;
}
