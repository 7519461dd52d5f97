/** The source at one port: at most one sender at a time, whose transport stream becomes an inbound stream. */
import { TS_SYNC } from '../../containers/mpegts/ts-buffer.ts';
import { type CloseReason, IngestRefused, type IngestRequest, type IngestStream } from '../../core/ingest.ts';
import { ProviderKind, SourceType } from '../../core/kinds.ts';
import type { StarterLimits } from '../../ingest/stream-starter.ts';
import { TransportFeed } from '../../ingest/transport-feed.ts';
import type { AudioMapEntry } from '../../ingest/transport-track.ts';
import type { AddressSet } from '../../util/address-set.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { faultDetail } from '../../util/message-of.ts';
import type { RefusalLog } from '../../util/refusal-log.ts';

/** The application for the stream of a port, as the applications say at the moment. */
export interface MpegtsRoute {
  readonly streamName: string;
  readonly audioLabels: readonly AudioMapEntry[];
  /** Number of the program to take; absent: the first. */
  readonly program?: number;
  /** Allowed senders; absent: all. */
  readonly sources?: AddressSet;
  /** Registers the stream; throws `IngestRefused`. */
  readonly open: (request: IngestRequest) => IngestStream;
}

/** All in milliseconds. */
export interface MpegtsTimeouts {
  /** Silence of a sender whose tracks are not known yet; later `PacketSilenceTimeoutMs` counts. */
  readonly unpublishedSilence: number;
  /** Silence of a sender after which another one at the same address may go on with the stream: its encoder was restarted. */
  readonly senderSilence: number;
  /** The same for a sender at another address, which may be a different encoder. */
  readonly strangerSilence: number;
  /** From the first packet to the first usable track. */
  readonly firstTrack: number;
  /** From a refused registration to the next try. */
  readonly retry: number;
}
/** Used for every timeout not given. */
export const DEFAULT_MPEGTS_TIMEOUTS: MpegtsTimeouts = {
  unpublishedSilence: 3000,
  senderSilence: 1000,
  strangerSilence: 5000,
  firstTrack: 15_000,
  retry: 1000,
};

/** Counts of unused packets. */
export interface PortCounters {
  datagrams: number;
  /** Datagrams of a second sender while the first one sends. */
  foreign: number;
  /** Datagrams of senders that are not allowed on this port. */
  barred: number;
  /** Datagrams without a transport stream. */
  foreignFormat: number;
  /** Datagrams for a port that no application takes, or whose stream was refused. */
  unrouted: number;
}

/** The provider as one port sees it; it also feeds the port and keeps its time. */
export interface PortSourceOptions {
  readonly port: number;
  /** Precedes the address of a sender. */
  readonly scheme: 'UDP' | 'TCP';
  readonly route: (port: number) => MpegtsRoute | null;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly timeouts: MpegtsTimeouts;
  readonly feedLimits?: Partial<StarterLimits>;
  /** Logs refused senders; absent: they are not logged. */
  readonly refusals?: RefusalLog;
}

interface Publication {
  readonly stream: IngestStream;
  readonly feed: TransportFeed;
  readonly sources: AddressSet | undefined;
  readonly openedAt: number;
  lastAt: number;
}

/** Some senders put an RTP header before the packets; the demuxer skips it. */
const RTP_HEADER = 12;

/** The sender of a port and its publication, which ends when the core wants it or the sender falls silent before it has tracks. */
export class PortSource {
  readonly counters: PortCounters = { datagrams: 0, foreign: 0, barred: 0, foreignFormat: 0, unrouted: 0 };
  readonly #options: PortSourceOptions;
  readonly #logger: Logger;
  #sender = '';
  #publication: Publication | null = null;
  #nextTry = Number.NEGATIVE_INFINITY;
  #refusal = '';

  constructor(options: PortSourceOptions) {
    this.#options = options;
    this.#logger = options.logger;
  }

  get publishing(): boolean {
    return this.#publication !== null;
  }

  /** There is a stream with tracks. */
  get started(): boolean {
    return this.#publication?.feed.started === true;
  }

  /** Takes a datagram, or a piece of a connection, of `sender` (`address:port`). */
  push(data: Uint8Array, sender: string): void {
    this.counters.datagrams += 1;
    const now = this.#options.clock.monotonic();
    const publication = this.#publication ?? this.#open(data, sender, now);
    if (publication === null) return;
    if (sender !== this.#sender) {
      if (!this.#hears(sender, publication.sources)) return;
      const { senderSilence, strangerSilence } = this.#options.timeouts;
      const isSameHost = hostOf(sender) === hostOf(this.#sender);
      if (now - publication.lastAt < (isSameHost ? senderSilence : strangerSilence)) {
        this.counters.foreign += 1;
        return;
      }
      this.#logger[isSameHost ? 'info' : 'warn'](
        { peer: sender, before: this.#sender },
        `another sender goes on with stream '${publication.stream.name}'`,
      );
      this.#sender = sender;
    }
    publication.lastAt = now;
    publication.stream.countBytes(data.length);
    try {
      publication.feed.push(data);
    } catch (error) {
      this.#fail(publication, error);
    }
  }

  /** Whether `sender` is allowed on the port. */
  admits(sender: string): boolean {
    return this.#hears(sender, this.#options.route(this.#options.port)?.sources);
  }

  /** The sender has closed its connection. */
  left(sender: string): void {
    if (sender === this.#sender) this.close({ code: 'peer-left', detail: 'the sender closed its connection' });
  }

  /** Checks deadlines; call it some times a second. */
  checkDeadlines(): void {
    const publication = this.#publication;
    if (publication === null) return;
    const { unpublishedSilence, firstTrack } = this.#options.timeouts;
    const now = this.#options.clock.monotonic();
    try {
      publication.feed.checkStart(now);
    } catch (error) {
      this.#fail(publication, error);
      return;
    }
    if (publication.feed.started) return;
    if (now - publication.lastAt >= unpublishedSilence) {
      this.close({ code: 'timeout', detail: `silent for ${unpublishedSilence} ms before any track was known` });
    } else if (now - publication.openedAt >= firstTrack) {
      const { fault } = publication.feed;
      this.close({ code: 'timeout', detail: `no usable track in ${firstTrack} ms${fault === null ? '' : `: ${fault}`}` });
    }
  }

  /** One sender's media must not harm the others. */
  #fail({ stream }: Publication, error: unknown): void {
    const reason: CloseReason = { code: 'peer-error', detail: faultDetail(error, this.#logger, 'transport stream') };
    this.#forget(reason);
    stream.close(reason);
  }

  /** Ends the publication, if any; the port stays open. */
  close(reason: CloseReason): void {
    const publication = this.#publication;
    if (publication === null) return;
    try {
      publication.feed.end();
    } catch (error) {
      this.#fail(publication, error);
      return;
    }
    this.#forget(reason);
    publication.stream.close(reason);
  }

  #open(data: Uint8Array, sender: string, now: number): Publication | null {
    if (data[0] !== TS_SYNC && data[RTP_HEADER] !== TS_SYNC) {
      this.counters.foreignFormat += 1;
      return null;
    }
    if (now < this.#nextTry) {
      this.counters.unrouted += 1;
      return null;
    }
    try {
      const route = this.#options.route(this.#options.port);
      if (route === null) throw new IngestRefused('no-application', `no application takes port ${this.#options.port}`);
      if (!this.#hears(sender, route.sources)) return null;
      const stream = route.open({
        streamName: route.streamName,
        provider: ProviderKind.MPEGTS,
        sourceType: SourceType.MPEGTS,
        sourceUrl: `${this.#options.scheme}://${sender}`,
        client: hostOf(sender),
        onClose: (reason) => this.#forget(reason),
      });
      return this.#publish(stream, route, sender, now);
    } catch (error) {
      if (error instanceof IngestRefused) this.#refuse(error, sender, now);
      else {
        this.#logger.error({ err: error, peer: sender }, 'transport stream failed inside the server');
        this.#nextTry = now + this.#options.timeouts.retry;
      }
      return null;
    }
  }

  #publish(stream: IngestStream, route: MpegtsRoute, sender: string, now: number): Publication {
    const logger = this.#logger.child({ stream: stream.name });
    const { feedLimits } = this.#options;
    const { audioLabels, program } = route;
    const feed = new TransportFeed({
      ...{ stream, logger, audioLabels, clock: this.#options.clock },
      ...(program !== undefined && { program }),
      ...(feedLimits && { limits: feedLimits }),
    });
    this.#publication = { stream, feed, sources: route.sources, openedAt: now, lastAt: now };
    this.#sender = sender;
    this.#refusal = '';
    logger.info({ peer: sender }, `stream '${stream.name}' comes in`);
    return this.#publication;
  }

  #hears(sender: string, sources: AddressSet | undefined): boolean {
    if (sources === undefined || sources.has(hostOf(sender))) return true;
    this.counters.barred += 1;
    const { port, refusals } = this.#options;
    refusals?.note('MPEG-TS senders not heard: the stream map names others for their port', { port, peer: sender });
    return false;
  }

  /** A UDP sender does not learn of its refusal and continues: it is logged once. */
  #refuse(error: IngestRefused, sender: string, now: number): void {
    this.counters.unrouted += 1;
    this.#nextTry = now + this.#options.timeouts.retry;
    if (this.#refusal === error.message) return;
    this.#refusal = error.message;
    this.#logger.warn({ peer: sender, code: error.code }, `publisher refused: ${error.message}`);
  }

  #forget(reason: CloseReason): void {
    const publication = this.#publication;
    if (publication === null) return;
    this.#publication = null;
    this.#nextTry = this.#options.clock.monotonic() + this.#options.timeouts.retry;
    const { demuxer, counters } = publication.feed;
    const { gaps, damaged, errors, scrambled, packets } = demuxer.counters;
    this.#logger.info(
      {
        reason: reason.code,
        packets,
        gaps,
        damaged,
        errors,
        scrambled,
        skippedBytes: demuxer.skippedBytes,
        brokenTables: demuxer.brokenTables,
        ...counters,
      },
      `stream '${publication.stream.name}' ended: ${reason.detail}`,
    );
  }
}

/** The address of `address:port`, without the brackets of IPv6. */
function hostOf(sender: string): string {
  const host = sender.slice(0, sender.lastIndexOf(':'));
  return host.startsWith('[') ? host.slice(1, -1) : host;
}
