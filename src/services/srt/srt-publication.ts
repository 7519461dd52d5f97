/** One encoder: an SRT connection whose transport stream becomes an inbound stream. */
import { type CloseReason, type IngestGate, IngestRefused, type IngestStream, type SourceTrack } from '../../core/ingest.ts';
import { ProviderKind, SourceType } from '../../core/kinds.ts';
import type { StarterLimits } from '../../ingest/stream-starter.ts';
import { TransportFeed } from '../../ingest/transport-feed.ts';
import type { AudioMapEntry } from '../../ingest/transport-track.ts';
import type { LinkLabels, WatchedLink } from '../../transport/srt/link-reporter.ts';
import { hostPort } from '../../util/client-address.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { faultDetail } from '../../util/message-of.ts';
import type { SrtCloseReason, SrtConnection } from '../../wire/srt/connection.ts';
import type { SrtCall } from '../../wire/srt/multiplexer.ts';
import { RejectionCode } from '../../wire/srt/rejection.ts';
import type { SrtStatistics } from '../../wire/srt/statistics.ts';
import type { SrtTarget } from '../../wire/srt/stream-id.ts';
import type { LimitedSession } from './srt-admission.ts';

/** All in milliseconds, on top of the latency of the connection. */
export interface SrtTimeouts {
  /** Silence of an encoder whose tracks are not known yet. */
  readonly unpublishedSilence: number;
  /** From the handshake to the first usable track. */
  readonly firstTrack: number;
}
/** The default timeouts. */
export const DEFAULT_SRT_TIMEOUTS: SrtTimeouts = { unpublishedSilence: 3000, firstTrack: 15_000 };

/** Dependencies of each publication. */
export interface SrtPublicationOptions {
  readonly id: number;
  readonly call: SrtCall;
  readonly target: SrtTarget;
  readonly gate: IngestGate;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Time of the connection, µs. */
  readonly now: () => number;
  readonly timeouts: SrtTimeouts;
  readonly feedLimits: Partial<StarterLimits>;
  readonly audioLabels: (stream: IngestStream, target: SrtTarget) => readonly AudioMapEntry[];
  /** The connection is gone. Called once. */
  readonly onClosed: (publication: SrtPublication) => void;
}

/** Why a caller is not admitted. */
export interface CallerRefusal {
  readonly code: RejectionCode;
  /** Machine word of the reason. */
  readonly kind: string;
  readonly reason: string;
  readonly detail: string;
}

/** For a caller that does not state a mode, and counts as a publisher. */
const FOR_PLAYERS = 'to play it, call the port of Bind/Publishers/SRT';

/** The rejection for a caller whose stream the core refuses. */
export const SRT_REFUSALS: Readonly<Record<IngestRefused['code'], RejectionCode>> = {
  'no-virtual-host': RejectionCode.NOT_FOUND,
  'no-application': RejectionCode.NOT_FOUND,
  'provider-disabled': RejectionCode.FORBIDDEN,
  'duplicate-name': RejectionCode.CONFLICT,
  'invalid-name': RejectionCode.BAD_REQUEST,
  full: RejectionCode.OVERLOAD,
  'shutting-down': RejectionCode.UNAVAILABLE,
};

const CLOSE_CODES: Readonly<Record<SrtCloseReason['code'], CloseReason['code']>> = {
  closed: 'shutdown',
  'peer-left': 'peer-left',
  timeout: 'timeout',
};

const MAX_PROGRAM = 65_535;

/** The parts of a publication whose stream is registered. */
interface Opened {
  readonly stream: IngestStream;
  readonly logger: Logger;
  /** Number of the program to take; null: the first. */
  readonly program: number | null;
}

/** Owns its connection. Ends with a reason, whichever side ends it. */
export class SrtPublication implements LimitedSession, WatchedLink {
  readonly labels: LinkLabels;
  readonly logger: Logger;
  readonly #options: SrtPublicationOptions;
  readonly #stream: IngestStream;
  readonly #feed: TransportFeed;
  readonly #openedAt: number;
  #connection: SrtConnection | null = null;
  #closeReason: CloseReason | null = null;
  #heardAt: number;
  /** Latency of the connection, ms: packets cannot arrive sooner. */
  #latency = 0;

  private constructor(options: SrtPublicationOptions, { stream, logger, program }: Opened) {
    this.#options = options;
    this.#stream = stream;
    const { id, call, target } = options;
    const peer = hostPort(call.peer.address, call.peer.port);
    this.labels = { session: String(id), peer, vhost: stream.vhost, app: target.app, stream: target.stream };
    this.logger = logger.child({ vhost: stream.vhost });
    this.#openedAt = options.clock.monotonic();
    this.#heardAt = this.#openedAt;
    this.#feed = new TransportFeed({
      stream,
      logger: this.logger,
      audioLabels: options.audioLabels(stream, options.target),
      limits: options.feedLimits,
      clock: options.clock,
      ...(program !== null && { program }),
      onStarted: (tracks) => this.logger.info({ tracks: tracks.map(trackLabel) }, 'SRT stream started'),
    });
  }

  /** Checks and registers the stream in one step; the connection comes with `onOpen`. */
  static open(options: SrtPublicationOptions): SrtPublication | CallerRefusal {
    const { target, call, gate } = options;
    const peer = hostPort(call.peer.address, call.peer.port);
    const program = programOf(target.url);
    if (program !== null && !(program >= 1 && program <= MAX_PROGRAM)) {
      const reason = `program of the stream id must be a number from 1 to ${MAX_PROGRAM}`;
      return { code: RejectionCode.BAD_REQUEST, kind: 'bad-program', reason, detail: reason };
    }
    const logger = options.logger.limited.child({ session: options.id, peer, app: target.app, stream: target.stream });
    let publication: SrtPublication | null = null;
    try {
      const stream = gate.openIngest(
        { vhost: target.host, host: target.host, app: target.app },
        {
          streamName: target.stream,
          provider: ProviderKind.SRT,
          sourceType: SourceType.SRT,
          sourceUrl: `SRT://${peer}`,
          client: call.peer.address,
          onClose: (reason) => publication?.close(reason),
        },
      );
      publication = new SrtPublication(options, { stream, logger, program });
      return publication;
    } catch (error) {
      if (!(error instanceof IngestRefused)) throw error;
      const mayPlay = error.code === 'duplicate-name' ? `; ${FOR_PLAYERS}` : '';
      return {
        code: SRT_REFUSALS[error.code],
        kind: error.code,
        reason: `${error.message}${mayPlay}`,
        detail: `${target.host}/${target.app}/${target.stream} refused, ${error.code}: ${error.message}`,
      };
    }
  }

  /** Present figures of the connection; null while there is none. */
  get statistics(): SrtStatistics | null {
    return this.#connection?.statistics ?? null;
  }

  onOpen(connection: SrtConnection): void {
    this.#connection = connection;
    this.#latency = connection.terms.latency / 1000;
    this.logger.info({ latencyMs: this.#latency, encrypted: connection.encrypted }, 'SRT stream published');
  }

  onData(payload: Uint8Array): void {
    if (this.#closeReason !== null) return;
    this.#heardAt = this.#options.clock.monotonic();
    this.#stream.countBytes(payload.length);
    try {
      this.#feed.push(payload);
    } catch (error) {
      this.#fail(error);
    }
  }

  onClosed(reason: SrtCloseReason): void {
    this.close({ code: CLOSE_CODES[reason.code], detail: reason.detail });
    this.#options.onClosed(this);
  }

  expire(reason: string): void {
    this.close({ code: 'expired', detail: reason });
  }

  /** Ends the stream and the connection. Idempotent. */
  close(reason: CloseReason): void {
    if (this.#closeReason !== null) return;
    this.#closeReason = reason;
    try {
      this.#feed.end();
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#finish(reason);
  }

  /** Media of one sender must not harm other streams. */
  #fail(error: unknown): void {
    const reason: CloseReason = { code: 'peer-error', detail: faultDetail(error, this.logger, 'SRT connection') };
    this.#closeReason = reason;
    this.#finish(reason);
  }

  #finish(reason: CloseReason): void {
    this.#stream.close(reason);
    this.#report(reason);
    this.#connection?.close(reason.detail, this.#options.now());
  }

  /** Applies every deadline; called regularly by the provider. */
  checkDeadlines(): void {
    if (this.#closeReason !== null) return;
    const now = this.#options.clock.monotonic();
    try {
      this.#feed.checkStart(now);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#feed.started) return;
    const { unpublishedSilence, firstTrack } = this.#options.timeouts;
    if (now - this.#heardAt >= unpublishedSilence + this.#latency) {
      this.close({ code: 'timeout', detail: `silent for ${unpublishedSilence} ms before any track was known; ${FOR_PLAYERS}` });
    } else if (now - this.#openedAt >= firstTrack + this.#latency) {
      const { fault } = this.#feed;
      this.close({ code: 'timeout', detail: `no usable track within ${firstTrack} ms${fault === null ? '' : `: ${fault}`}` });
    }
  }

  #report({ code, detail }: CloseReason): void {
    const { statistics } = this;
    this.logger.info(
      {
        code,
        detail,
        durationMs: Math.round(this.#options.clock.monotonic() - this.#openedAt),
        ...(statistics === null ? {} : { rttMs: Math.round(statistics.rtt * 10) / 10, ...statistics.receiver }),
        ...this.#feed.counters,
        transport: this.#feed.demuxer.counters,
      },
      'SRT connection closed',
    );
  }
}

/** `program` of the query; null when there is none, NaN when it is no number. */
function programOf(url: string): number | null {
  const start = url.indexOf('?');
  const text = start < 0 ? null : new URLSearchParams(url.slice(start + 1)).get('program');
  if (text === null) return null;
  return /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
}

function trackLabel(track: SourceTrack): string {
  return track.type === 'data' ? `${track.id}:data` : `${track.id}:${track.codec}`;
}
