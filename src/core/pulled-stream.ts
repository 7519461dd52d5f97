import { setTimeout as delay } from 'node:timers/promises';
import { secretsOf } from '../config/index.ts';
import type { Clock } from '../util/clock.ts';
import { guarded } from '../util/guarded.ts';
import { withoutOwnSecrets } from '../util/known-secrets.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { InboundStream } from './inbound-stream.ts';
import { type CloseReason, IngestRefused, type IngestRequest } from './ingest.ts';
import { type PullDefinition, PullFailed, type PullSession, type PullSink, type PullSource, shownUrl } from './pull.ts';
import { pullPause } from './pull-pause.ts';
import { Probe } from './pull-probe.ts';
import { SourceLink } from './source-link.ts';
import type { StreamAddress } from './stream-address.ts';
import { SuccessorLookup } from './successor-lookup.ts';

/** Interval of the checks for silence, disuse and failback, ms. Everything a source does is an event. */
const SUPERVISION_MS = 100;
/** Minimum time between two attempts when a source ends at once, ms. */
const MIN_CONNECTION_MS = 100;
/** Time for one URL to deliver. */
const CONNECT_TIMEOUT_MS = 4000;
/** Time for a first URL to deliver a packet when it is tried again: it may have to wait for sender reports. */
const PROBE_MS = 8000;
/** Time for the first round over all URLs, because the request waits for it. */
const FIRST_ROUND_MS = 10_000;

/** Dependencies of one pulled stream, and its calls to its owner. */
export interface PulledStreamOptions {
  readonly definition: PullDefinition;
  readonly address: StreamAddress;
  readonly source: PullSource;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The application's present settings of the provider. */
  readonly settings: () => unknown;
  /** Registers the stream in its application; throws `IngestRefused`. */
  readonly register: (request: IngestRequest) => InboundStream;
  /** The stream has ended for good. */
  readonly onEnd: (reason: CloseReason) => void;
  /** True while the stream must be kept, however long its source is away; absent: never. */
  readonly isAwaited?: () => boolean;
}

/** One connection to a source: while it opens, and while it delivers. */
interface Connection {
  readonly link: SourceLink;
  /** Null while it opens. */
  session: PullSession | null;
  /** Why the source ended; null while it delivers. */
  reason: CloseReason | null;
  /** The media is unusable: reconnecting at once would not help. */
  refused: boolean;
  /**
   * Resolves when `reason` is set or the connection is given up. Has only one waiter at a time, because it lives as long as the source
   * does.
   */
  readonly over: PromiseWithResolvers<void>;
  /** The probe of the first URL, which ends with this connection. */
  probe: Probe | null;
}

/**
 * One pulled stream: connects, supervises the source, continues with the next URL when it fails. It ends for good when it has no viewers,
 * when all attempts failed, or when it is deleted. The inbound stream stays the same, so viewers see a gap, not an end.
 */
export class PulledStream {
  readonly definition: PullDefinition;
  readonly #options: PulledStreamOptions;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  #stream: InboundStream | null = null;
  #connection: Connection | null = null;
  /** A source that is not open yet. */
  #opening: Connection | null = null;
  /** Settles when the stream is registered anew, or cannot be, after its application ended it. */
  #returning: Promise<void> | null = null;
  /** In the order of failover. */
  #urls: readonly string[];
  readonly #successors: SuccessorLookup | null;
  /** Servers on whose behalf the stream is requested, until it is there. */
  #via: readonly string[] | undefined;
  #url = 0;
  /** Tries in a row that brought no packet. */
  #failures = 0;
  /** Consecutive URLs that failed since the last media. */
  #turns = 0;
  /** When media came last, or the stream began; monotonic ms. */
  #inputAt: number;
  /** When a source was asked last, monotonic ms. */
  #askedAt = Number.NEGATIVE_INFINITY;
  /** When the first URL was last given up or tried, monotonic ms. */
  #leftFirstAt = 0;
  #probing = false;

  constructor(options: PulledStreamOptions) {
    this.definition = options.definition;
    this.#options = options;
    this.#logger = options.logger;
    const { urls, successor, via } = options.definition;
    this.#urls = urls;
    this.#via = via;
    this.#successors = successor === undefined ? null : new SuccessorLookup(successor, options.clock);
    this.#inputAt = options.clock.monotonic();
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Registers the stream and tries every URL once. Throws `IngestRefused`; rejects with `PullFailed`, and the stream is gone then. */
  async start(): Promise<void> {
    this.#register();
    const deadline = this.#options.clock.monotonic() + FIRST_ROUND_MS;
    let last: unknown = null;
    for (let index = 0; index < this.#urls.length && !this.closed; index += 1) {
      const left = deadline - this.#options.clock.monotonic();
      if (left <= 0) break;
      this.#url = index;
      try {
        await this.#connect(left);
        this.#leftFirstAt = this.#options.clock.monotonic();
        this.#inputAt = this.#leftFirstAt;
        this.#turns = 0;
        this.#via = undefined;
        this.#stream?.show();
        void this.#supervise();
        return;
      } catch (error) {
        last = error;
      }
    }
    const why = last instanceof Error ? last.message : 'it was deleted meanwhile';
    this.end({ code: 'peer-error', detail: `could not be pulled: ${why}` });
    throw new PullFailed(why, { cause: last });
  }

  /** Registers the stream and connects in the background. Throws `IngestRefused`. */
  resume(): void {
    this.#register();
    this.#stream?.show();
    void this.#supervise();
  }

  /** Ends the stream for good. Idempotent. */
  end(reason: CloseReason): void {
    if (this.closed) return;
    this.#closing.abort();
    this.#disconnect();
    const stream = this.#stream;
    this.#stream = null;
    stream?.close(reason);
    this.#options.onEnd(reason);
  }

  #register(): void {
    const { source, definition } = this.#options;
    const request: IngestRequest = {
      streamName: definition.name,
      provider: source.provider,
      sourceType: source.sourceType,
      sourceUrl: shownUrl(this.#currentUrl),
      passthrough: definition.properties.relay,
      fromOriginMap: definition.fromOriginMap === true,
      onClose: (reason) => this.#lost(reason),
      onUnusable: (reason) => this.#refuse(reason),
      onCongested: () => this.#connection?.session?.pause?.(),
      onRelieved: () => this.#connection?.session?.resume?.(),
    };
    this.#stream = this.#options.register(request);
  }

  /** The core ended the stream. A persistent stream returns with its application. */
  #lost(reason: CloseReason): void {
    this.#stream = null;
    const { properties, configured = false } = this.definition;
    if (reason.code !== 'application-restart' || !properties.persistent || configured) {
      this.end(reason);
      return;
    }
    this.#disconnect();
    this.#returning = new Promise((resolve) => {
      setImmediate(() => {
        this.#return();
        resolve();
      });
    });
  }

  /** Registers the stream anew. */
  #return(): void {
    if (this.closed) return;
    try {
      this.#register();
      this.#stream?.show();
    } catch (error) {
      if (!(error instanceof IngestRefused)) {
        this.#fail(error);
        return;
      }
      // A persistent stream is deleted only if its application is gone, too.
      const code = error.code === 'no-application' ? 'deleted' : 'application-restart';
      this.end({ code, detail: `could not return after the restart of its application: ${error.message}` });
    }
  }

  get #currentUrl(): string {
    return this.#urls[this.#url] ?? '';
  }

  /** A source's error text may contain its URL's secrets. */
  #shown(text: string): string {
    return withoutOwnSecrets(text, secretsOf(this.#urls));
  }

  async #connect(limitMs = Number.POSITIVE_INFINITY): Promise<void> {
    const url = this.#currentUrl;
    const shown = shownUrl(url);
    this.#askedAt = this.#options.clock.monotonic();
    // While the application restarts there is no stream to deliver to.
    if (this.#stream === null) await this.#returning;
    const stream = this.#stream;
    const connection = stream === null ? null : this.#linkTo(stream);
    try {
      if (stream === null || connection === null) throw new Error('it was deleted meanwhile');
      this.#opening = connection;
      const session = await this.#open(url, connection.link, Math.min(CONNECT_TIMEOUT_MS, Math.ceil(limitMs)));
      if (this.#stream !== stream || this.closed) {
        session.close();
        throw new Error(this.closed ? 'it was deleted meanwhile' : 'its application restarted meanwhile');
      }
      connection.session = session;
      this.#connection = connection;
      stream.moveTo(shown);
      this.#logger.info({ url: shown }, `pulling from ${shown}`);
    } catch (error) {
      connection?.link.cut();
      this.#failures += 1;
      this.#turns += 1;
      const why = this.#shown(messageOf(error));
      if (!this.closed) this.#logger.warn({ url: shown, failures: this.#failures }, `cannot pull from ${shown}: ${why}`);
      throw new PullFailed(why, { cause: error });
    } finally {
      this.#opening = null;
    }
  }

  /** Media of the link continues where the last connection ended. */
  #linkTo(stream: InboundStream): Connection {
    stream.changeSource();
    const onClose = (reason: CloseReason): void => {
      connection.reason ??= reason;
      endOf(connection);
    };
    const link = new SourceLink({ stream, clock: this.#options.clock, onClose });
    const connection: Connection = { link, session: null, reason: null, refused: false, over: Promise.withResolvers(), probe: null };
    return connection;
  }

  /** The core does not accept the packets. */
  #refuse(reason: CloseReason): void {
    const connection = this.#connection ?? this.#opening;
    if (connection === null) return;
    connection.reason ??= reason;
    connection.refused = true;
    endOf(connection);
  }

  /** Rejects when the limit is over or the stream ends, whatever the source does; a session that opens later is closed. */
  #open(url: string, sink: PullSink, limitMs: number): Promise<PullSession> {
    const { source, definition, settings, address } = this.#options;
    const { ignoreRtcpSRTimestamp: ignoreSenderReports } = definition.properties;
    // AbortSignal.any would leave an entry in a signal that lives for months, with every attempt.
    const attempt = new AbortController();
    const closing = this.#closing.signal;
    return new Promise((resolve, reject) => {
      closing.throwIfAborted();
      const giveUp = (why: string): void => {
        settled();
        reject(new Error(why));
        attempt.abort();
      };
      const end = (): void => giveUp('it was deleted meanwhile');
      const timer = setTimeout(() => giveUp(`no answer in ${limitMs} ms`), limitMs);
      const settled = (): void => {
        clearTimeout(timer);
        closing.removeEventListener('abort', end);
      };
      closing.addEventListener('abort', end, { once: true });
      const target = {
        ...{ url, ignoreSenderReports, settings: settings(), sink, signal: attempt.signal, logger: this.#logger },
        relay: definition.properties.relay,
        // Media of a probe is discarded.
        ...(!(sink instanceof Probe) && { stream: address }),
        ...(this.#via !== undefined && { via: this.#via }),
      };
      source
        .open(target)
        .finally(settled)
        .then((session) => {
          resolve(session);
          if (attempt.signal.aborted) session.close();
        }, reject)
        .catch((error: unknown) => this.#logger.error({ err: error }, 'the connection of a pulled stream could not be closed'));
    });
  }

  #disconnect(): void {
    const connection = this.#connection;
    this.#connection = null;
    if (connection === null) return;
    connection.link.cut();
    endOf(connection);
    connection.session?.close();
  }

  async #supervise(): Promise<void> {
    // Also while a source does not answer.
    const watch = setInterval(
      guarded(this.#logger, 'the watch over a pulled stream', () => this.#look()),
      SUPERVISION_MS,
    );
    try {
      while (!this.closed) {
        const connection = this.#connection;
        if (connection === null) await this.#reconnect();
        else {
          await connection.over.promise;
          if (connection === this.#connection) this.#leave(this.#shown(connection.reason?.detail ?? 'it ended'));
        }
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      clearInterval(watch);
    }
  }

  /** Checks that depend on time alone. */
  #look(): void {
    this.#checkLimits();
    const connection = this.#connection;
    if (this.closed || connection === null) return;
    this.#probeFirst().catch((error: unknown) => this.#fail(error));
    if (connection.link.packets > 0 && !connection.refused) this.#failures = 0;
    const { persistent, noInputFailoverTimeoutMs } = this.definition.properties;
    const isSilent = !persistent && connection.link.silence > noInputFailoverTimeoutMs;
    if (isSilent && connection.reason === null) this.#leave(`no packet for ${noInputFailoverTimeoutMs} ms`);
  }

  /** An internal error: the stream would no longer be supervised. */
  #fail(error: unknown): void {
    this.#logger.error({ err: error }, 'a pulled stream failed inside the server');
    this.end({ code: 'peer-error', detail: 'internal error' });
  }

  /** Ends a stream that is not persistent: it has no viewers, or every URL was tried without media. */
  #checkLimits(): void {
    const { properties, configured = false } = this.definition;
    const { persistent, noInputFailoverTimeoutMs, unusedStreamDeletionTimeoutMs } = properties;
    if (this.closed || persistent) return;
    const stream = this.#stream;
    const isUnused = stream !== null && stream.meter.out.silence > unusedStreamDeletionTimeoutMs;
    if (isUnused && !stream.outputs.some(({ tapped }) => tapped)) {
      this.end({ code: 'timeout', detail: `nobody watched for ${unusedStreamDeletionTimeoutMs} ms` });
      return;
    }
    this.#noteInput();
    // Configured streams end after a number of rounds instead (`#giveUpIfVain`).
    if (configured || this.#turns < this.#urls.length) return;
    if (this.#options.clock.monotonic() - this.#inputAt <= noInputFailoverTimeoutMs) return;
    this.end({ code: 'timeout', detail: `no input for ${noInputFailoverTimeoutMs} ms` });
  }

  #noteInput(): void {
    const heardAt = this.#connection?.link.heardAt ?? null;
    if (heardAt === null || heardAt < this.#inputAt) return;
    this.#inputAt = heardAt;
    this.#turns = 0;
  }

  /** The source is lost: the next URL follows. */
  #leave(why: string): void {
    const connection = this.#connection;
    if (this.closed || connection === null) return;
    this.#noteInput();
    if (connection.link.packets > 0 && !connection.refused) this.#failures = 0;
    else this.#failures += 1;
    this.#turns += 1;
    this.#logger.warn({ url: shownUrl(this.#currentUrl), failures: this.#failures }, `source lost: ${why}`);
    this.#disconnect();
    this.#nextUrl();
    this.#giveUpIfVain(why);
    this.#checkLimits();
  }

  /** Returns to the first URL when it works again. A first URL that fails does not disturb the present source. */
  async #probeFirst(): Promise<void> {
    const { failbackMs } = this.definition.properties;
    const now = this.#options.clock.monotonic();
    if (failbackMs === undefined || this.#url === 0 || this.#probing || now - this.#leftFirstAt < failbackMs) return;
    this.#probing = true;
    const connection = this.#connection;
    const [url = ''] = this.#urls;
    const probe = new Probe();
    if (connection !== null) connection.probe = probe;
    try {
      const session = await this.#open(url, probe, CONNECT_TIMEOUT_MS);
      // Many servers accept a request for a stream that they cannot send.
      const delivers = await this.#delivers(probe).finally(() => session.close());
      if (!delivers) throw new PullFailed('the source sends nothing');
      // The source was lost meanwhile, and the next URL is being connected.
      if (this.closed || this.#connection !== connection) return;
      this.#logger.info({ url: shownUrl(url) }, 'the first source works again');
      this.#disconnect();
      this.#url = 0;
    } catch {
      this.#leftFirstAt = this.#options.clock.monotonic();
    } finally {
      if (connection !== null) connection.probe = null;
      this.#probing = false;
    }
  }

  /** Resolves with whether a probe delivers: with its first packet, its end, the end of the connection, or the end of its time. */
  async #delivers(probe: Probe): Promise<boolean> {
    const timer = setTimeout(() => probe.close(), PROBE_MS);
    try {
      return await probe.delivers;
    } finally {
      clearTimeout(timer);
    }
  }

  async #reconnect(): Promise<void> {
    const kind = { urls: this.#urls.length, persistent: this.definition.properties.persistent };
    const least = MIN_CONNECTION_MS - (this.#options.clock.monotonic() - this.#askedAt);
    const wait = Math.max(least, this.#failures > 0 ? pullPause(this.#failures, kind, Math.random()) : 0);
    if (wait > 0) await pause(wait, this.#closing.signal);
    if (this.closed) return;
    const successor = await this.#successors?.find(this.#options.source.schemes);
    if (this.closed) return;
    if (successor !== undefined && successor !== null) this.#urls = [successor];
    try {
      await this.#connect();
    } catch (error) {
      this.#nextUrl();
      this.#giveUpIfVain(messageOf(error));
    }
  }

  #nextUrl(): void {
    if (this.#url === 0) this.#leftFirstAt = this.#options.clock.monotonic();
    this.#url = (this.#url + 1) % this.#urls.length;
  }

  #giveUpIfVain(why: string): void {
    const { persistent, retryCount } = this.definition.properties;
    if (this.closed || persistent || this.#failures <= this.#urls.length * retryCount || this.#options.isAwaited?.() === true) return;
    if (this.#successors !== null && !this.#successors.isOver(this.#inputAt)) return;
    this.end({ code: 'peer-error', detail: `given up after ${this.#failures} failures, the last one: ${why}` });
  }
}

/** Releases waiters for the end of a connection. */
function endOf({ over, probe }: Connection): void {
  over.resolve();
  probe?.close();
}

/** Waits, or returns at once when `signal` is aborted. */
async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await delay(milliseconds, undefined, { signal }).catch(() => undefined);
}
