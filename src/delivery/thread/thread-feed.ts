/** A feed of a delivery thread: its view, sessions, access and CORS rules. */

import type { AccessProtocol } from '../../access/access-check.ts';
import { CrossDomainPolicy, type CrossDomainRules } from '../../access/cross-domains.ts';
import type { PublisherKind } from '../../core/kinds.ts';
import { streamKey } from '../../core/stream-address.ts';
import type { Clock } from '../../util/clock.ts';
import type { FeedMessage } from '../feed/messages.ts';
import type { DeliveryExchange, DeliveryView, ViewContext, ViewerSession, ViewFactory } from '../feed/view.ts';
import type { HttpCounters } from '../http-counters.ts';
import type { ServedFeed } from './delivery.ts';
import { protocolOf, type RequestAdmission } from './request-admission.ts';
import type { SessionPlace, ThreadSessions } from './thread-sessions.ts';

/** Allowed methods in CORS answers. */
export const DELIVERY_METHODS = 'OPTIONS, GET, HEAD';
const THUMBNAIL_METHODS = 'GET';
/** A feed without a request for this many reports has no viewers: players send requests within this time, even while they wait. */
const QUIET_REPORTS = 60;

/** Dependencies of a feed. */
export interface ThreadFeedServices {
  /** A view threw in a timer, after which the next one runs, or at the end of its thread. */
  readonly onFault: (error: unknown) => void;
  /** Reports whether a feed has viewers. */
  readonly setWatched: (feed: number, wanted: boolean) => void;
  readonly sessions: ThreadSessions;
  readonly requestAdmission: RequestAdmission;
  readonly counters: Pick<HttpCounters, 'overloads'>;
  readonly clock: Clock;
}

/** One feed, with the services for its view. */
export class ThreadFeed implements ServedFeed, SessionPlace, ViewContext {
  readonly feed: number;
  readonly kind: PublisherKind;
  readonly protocol: AccessProtocol | undefined;
  readonly view: DeliveryView;
  policy: CrossDomainPolicy;
  /** For OPTIONS, the same for every feed. */
  preflight: CrossDomainPolicy;
  bytesSent = 0;
  /** A reader without a session was served since the last report. */
  hasReader = false;
  /** Reports since the last request; infinite: no viewers. */
  #quiet = Number.POSITIVE_INFINITY;
  readonly #vhost: string;
  readonly #app: string;
  readonly #key: string;
  readonly #own: CrossDomainRules | null;
  readonly #services: ThreadFeedServices;
  readonly #timers = new Set<NodeJS.Timeout>();
  /** Result of the access control for this version of its settings. Every session keeps the address, so all share one string. */
  #version = -1;
  #guarded = false;
  #address = '';

  constructor(
    message: Extract<FeedMessage, { type: 'feed-open' }>,
    factory: ViewFactory,
    defaults: CrossDomainRules,
    services: ThreadFeedServices,
  ) {
    this.feed = message.feed;
    this.kind = message.kind;
    this.protocol = protocolOf(message.kind);
    this.#vhost = message.address.vhost;
    this.#app = message.address.app;
    this.#key = streamKey(message.address);
    this.#own = message.crossDomains;
    this.#services = services;
    this.preflight = new CrossDomainPolicy({ defaults, own: this.#own, methods: DELIVERY_METHODS });
    this.policy = this.#policyFor(defaults);
    this.view = factory(message.settings, this);
  }

  /** A request for the feed is served, or waits. */
  asked(): void {
    if (this.#quiet === Number.POSITIVE_INFINITY) this.#services.setWatched(this.feed, true);
    this.#quiet = 0;
  }

  /** Called after each report. */
  look(): void {
    this.#quiet += 1;
    if (this.#quiet !== QUIET_REPORTS) return;
    this.forget();
    this.#services.setWatched(this.feed, false);
  }

  /** The feed has no viewers, and the main thread has that information. */
  forget(): void {
    this.#quiet = Number.POSITIVE_INFINITY;
  }

  /** The server-wide default rules have changed. */
  setDefaults(defaults: CrossDomainRules): void {
    this.preflight = new CrossDomainPolicy({ defaults, own: this.#own, methods: DELIVERY_METHODS });
    this.policy = this.#policyFor(defaults);
  }

  get guarded(): boolean {
    this.#look();
    return this.#guarded;
  }

  /** Sessions of one protocol are not valid for another guarded protocol, and sessions from before the protection are not valid. */
  get address(): string {
    this.#look();
    return this.#address;
  }

  createSession(exchange: DeliveryExchange): ViewerSession | null {
    const { admission } = exchange;
    if (this.guarded && admission?.protocol !== this.protocol) return null;
    // The viewer was admitted before the application had tokens.
    const hasToken = admission?.grant !== undefined || admission?.sent === true;
    if (this.#services.requestAdmission.asksForTokens(this.#vhost, this.#app) && !hasToken) return null;
    const { sessions } = this.#services;
    const session = sessions.create(this, exchange.remoteAddress, {
      until: admission?.expiresAt,
      grant: admission?.grant,
      ticket: admission?.ticket,
    });
    if (session === null) return null;
    admission?.entered();
    exchange.billTo(session);
    return session;
  }

  session(exchange: DeliveryExchange): ViewerSession | null {
    const token = exchange.queryValue('session');
    const session = token === undefined ? null : this.#services.sessions.check(this, token, exchange.remoteAddress);
    if (session !== null) exchange.billTo(session);
    return session;
  }

  countViewer(exchange: DeliveryExchange, ttlMs: number): boolean {
    const { remoteAddress } = exchange;
    const key = `${remoteAddress} ${exchange.header('user-agent') ?? ''}`;
    const viewer = this.#services.sessions.count(this, key, ttlMs, remoteAddress);
    if (viewer !== null && viewer !== 'full') exchange.billTo(viewer);
    return viewer !== null;
  }

  noteReader(): void {
    this.hasReader = true;
  }

  noteOverload(): void {
    this.#services.counters.overloads += 1;
  }

  schedule(ms: number, callback: () => void): () => void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      try {
        callback();
      } catch (error) {
        this.#services.onFault(error);
      }
    }, ms);
    this.#timers.add(timer);
    return () => {
      clearTimeout(timer);
      this.#timers.delete(timer);
    };
  }

  now(): number {
    return this.#services.clock.monotonic();
  }

  /** Closes everything else first, then throws the view's exception. */
  close(): void {
    try {
      this.view.close();
    } finally {
      for (const timer of this.#timers) clearTimeout(timer);
      this.#timers.clear();
      this.#services.sessions.closeFeed(this.feed);
    }
  }

  #look(): void {
    const { requestAdmission } = this.#services;
    if (this.#version === requestAdmission.version) return;
    this.#version = requestAdmission.version;
    const mark = requestAdmission.markOf(this.#vhost, this.#app, this.protocol);
    this.#guarded = mark !== undefined;
    this.#address = mark === undefined ? this.#key : `${this.#key} ${mark}`;
  }

  #policyFor(defaults: CrossDomainRules): CrossDomainPolicy {
    return this.kind === 'thumbnail' ? new CrossDomainPolicy({ defaults, own: this.#own, methods: THUMBNAIL_METHODS }) : this.preflight;
  }
}
