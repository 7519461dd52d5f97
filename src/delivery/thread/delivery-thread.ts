/** The logic of one delivery thread, independent of workers: messages come in and go out. */

import { AccessControls, allChecks, type ChecksOf } from '../../access/access-controls.ts';
import { deniedFields, deniedLine } from '../../access/log-denied.ts';
import { hostOf, type ListenAddress, requireFreePort } from '../../transport/tcp/shared-port.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/message-of.ts';
import { Admission } from '../admission.ts';
import type { ViewFactories } from '../feed/view.ts';
import { HostTable } from '../host-table.ts';
import { HttpListener } from '../http/http-listener.ts';
import { DirectSecureListener } from '../http/secure/direct-secure-listener.ts';
import { SecureListener } from '../http/secure-listener.ts';
import { DateLine } from '../http/status-line.ts';
import { type HttpCounters, newHttpCounters } from '../http-counters.ts';
import { SessionTokens } from '../session-token.ts';
import type { FromThread, SessionEvent, ThreadReport, ThreadSettings, ToThread } from '../thread-protocol.ts';
import type { Certificate } from '../tls/certificate-index.ts';
import { AnswerCache, NO_ANSWERS } from './answer-cache.ts';
import { BlockTable } from './block-table.ts';
import { CatchUp } from './catch-up.ts';
import { COMMON_HEADERS, type Delivery, type DeliveryServices, RefusalText } from './delivery.ts';
import { FeedRegistry } from './feed-registry.ts';
import { HotFiles } from './hot-files.ts';
import { MAX_RELAY, MainThreadRelay } from './main-thread-relay.ts';
import { PageHandler } from './page-handler.ts';
import { PageRules } from './page-rules.ts';
import { PendingDemands } from './pending-demands.ts';
import { RequestAdmission } from './request-admission.ts';
import { RequestRouter } from './request-router.ts';
import { SharedFiles } from './shared-files.ts';
import { TextCoder } from './text-coder.ts';
import { ThreadSessions } from './thread-sessions.ts';
import { WebhookAdmissions } from './webhook-admissions.ts';

/** `post` sends to the main thread, in order. */
export interface DeliveryThreadOptions {
  readonly settings: ThreadSettings;
  readonly views: ViewFactories;
  readonly clock: Clock;
  readonly post: (message: FromThread) => void;
  /** Checks of access control, by the settings of a virtual host; default: all. */
  readonly checksOf?: ChecksOf;
}

/** Lives from its construction until the message `stop`, which ends ports, streams and connections and is answered with `stopped`. */
export class DeliveryThread {
  readonly #options: DeliveryThreadOptions;
  readonly #catchUp: CatchUp;
  readonly #answers: AnswerCache | null;
  readonly #blocks: BlockTable;
  /** Since the last report. */
  readonly #idleBlocks: number[] = [];
  readonly #hosts = new HostTable();
  readonly #feeds: FeedRegistry;
  readonly #pageRules = new PageRules();
  readonly #sessions: ThreadSessions;
  readonly #services: DeliveryServices;
  readonly #admission: Admission;
  readonly #foreign: MainThreadRelay | null;
  readonly #demands: PendingDemands;
  readonly #access: AccessControls;
  readonly #webhooks: WebhookAdmissions;
  readonly #requestAdmission: RequestAdmission;
  readonly #router: RequestRouter;
  readonly #date: DateLine;
  readonly #counters: HttpCounters = newHttpCounters();
  readonly #listeners = new Map<number, HttpListener | DirectSecureListener | SecureListener>();
  readonly #reporter: NodeJS.Timeout;
  #certificates: readonly Certificate[] = [];
  #logConnections: boolean;
  #stopping = false;

  constructor(options: DeliveryThreadOptions) {
    const { settings, clock, views, post } = options;
    const { limits } = settings;
    this.#options = options;
    this.#logConnections = settings.logConnections;
    this.#catchUp = new CatchUp((wanted) => {
      post({ type: 'catch-up', wanted });
      if (wanted) return;
      this.#feeds.rest();
      this.#answers?.forget();
    });
    this.#answers = AnswerCache.open(this.#counters, (feed, bytes) => this.#feeds.answered(feed, bytes), limits.waiting);
    this.#blocks = new BlockTable((block) => this.#idleBlocks.push(block));
    this.#admission = new Admission(settings.admission, {
      connections: limits.http.connections,
      relays: MAX_RELAY,
      log: { warn: (fields, message) => this.#log('warn', fields, message) },
    });
    this.#webhooks = new WebhookAdmissions({
      ...{ clock, threads: settings.admission.threads, limit: limits.waiting },
      logger: { warn: (fields, message) => this.#log('warn', fields, message) },
    });
    const access = new AccessControls({
      clock,
      onFault: (error, what) => this.#log('error', { error: String(error) }, `${what} failed inside the server`),
      tell: (denied, vhost, request) =>
        this.#admission.refusals.note(deniedLine(request, denied.reason), deniedFields(denied, vhost, request)),
      checksOf: options.checksOf ?? allChecks(clock, (webhooks, vhost) => this.#webhooks.check(webhooks, vhost)),
    });
    this.#access = access;
    this.#sessions = new ThreadSessions({
      share: this.#admission.sessionShare,
      onFull: (peer) => this.#admission.refusals.note('viewer sessions refused: their address has its share', { peer }),
      tokens: new SessionTokens(settings.secret, settings.incarnation),
      clock,
      limit: limits.sessions,
      idle: limits.sessionIdle,
      lifetime: limits.sessionLifetime,
      holds: (grant) => access.keys.holds(grant),
      answers: this.#answers,
    });
    this.#requestAdmission = new RequestAdmission(access, this.#admission.proxies);
    this.#feeds = new FeedRegistry({
      requestAdmission: this.#requestAdmission,
      sessions: this.#sessions,
      answers: this.#answers,
      counters: this.#counters,
      clock,
      views,
      onFault: (error) => this.#log('error', { error: String(error) }, 'the view of a stream failed'),
      setWatched: (feed, wanted) => post({ type: 'feed-watched', feed, wanted }),
    });
    this.#services = {
      blocks: this.#blocks,
      coder: new TextCoder(),
      files: new SharedFiles(limits.fileBytes),
      hot: new HotFiles(limits.hotBytes, undefined, this.#admission),
      answers: this.#answers,
      proxies: this.#admission.proxies,
      counters: this.#counters,
      waiting: new Set<Delivery>(),
    };
    this.#foreign = settings.foreign === null ? null : new MainThreadRelay(settings.foreign, this.#admission, limits.timeoutScale);
    this.#demands = new PendingDemands(post, limits.waiting);
    this.#router = new RequestRouter({
      hosts: this.#hosts,
      feeds: this.#feeds,
      pageRules: this.#pageRules,
      services: this.#services,
      catchUp: this.#catchUp,
      maxWaiting: limits.waiting,
      demands: this.#demands,
      requestAdmission: this.#requestAdmission,
      foreign: this.#foreign,
      pages:
        settings.pages === null
          ? null
          : new PageHandler(settings.pages, (error) => this.#log('error', { error: String(error) }, 'a page for browsers cannot be read')),
    });
    this.#date = new DateLine(clock);
    this.#reporter = setInterval(() => {
      try {
        this.#report();
      } catch (error) {
        this.#log('error', { error: String(error) }, 'a delivery thread could not report');
      }
    }, limits.reportInterval);
    post({ type: 'ready' });
  }

  /** Applies messages of the main thread in order. A failed message is logged, and the next one is applied. */
  receive(messages: readonly ToThread[]): void {
    for (const message of messages) {
      try {
        this.#apply(message);
      } catch (error) {
        this.#log('error', { message: message.type, error: String(error) }, 'a delivery thread could not apply a message');
      }
    }
  }

  #apply(message: ToThread): void {
    switch (message.type) {
      case 'hosts':
        this.#answers?.forget();
        this.#hosts.set(message.hosts);
        this.#requestAdmission.setHosts(message.hosts);
        this.#pageRules.setHosts(message.hosts);
        this.#webhooks.follow(message.hosts);
        this.#demands.setOrigins(new Set(message.hosts.filter(({ hasOrigins }) => hasOrigins).map(({ name }) => name)));
        break;
      case 'demand-answer':
        this.#demands.answered(message.question, message.found);
        break;
      case 'admissions-over':
        for (const ticket of message.tickets) this.#webhooks.over(ticket);
        break;
      case 'draining':
        this.#router.draining = message.on;
        break;
      case 'default-cross-domains':
        this.#feeds.setDefaults(message.rules);
        this.#pageRules.setDefaults(message.rules);
        break;
      case 'log-connections':
        this.#logConnections = message.on;
        break;
      case 'certificates':
        this.#useCertificates(message.certificates, message.handover);
        break;
      case 'listen':
        void this.#listen(message);
        break;
      case 'unlisten':
        void this.#unlisten(message.listener);
        break;
      case 'block-add':
        this.#blocks.add(message.block, message.buffer);
        break;
      case 'block-retire':
        this.#blocks.retire(message.block);
        break;
      case 'revoke':
        this.#sessions.revoke(message.sessions);
        break;
      case 'caught-up':
        this.#catchUp.caughtUp();
        break;
      case 'stop':
        void this.#stop();
        break;
      default:
        this.#feeds.apply(message);
    }
  }

  #useCertificates(certificates: readonly Certificate[], handover: number): void {
    this.#certificates = certificates;
    try {
      for (const listener of this.#listeners.values()) if (!(listener instanceof HttpListener)) listener.setCertificates(certificates);
    } finally {
      this.#options.post({ type: 'applied', handover });
    }
  }

  async #listen({ listener: id, request, first, held }: Extract<ToThread, { type: 'listen' }>): Promise<void> {
    const address: ListenAddress = { host: hostOf(request), port: request.port, ...(held !== undefined && { held }) };
    try {
      const listener = request.tls ? this.#secureListener() : this.#plainListener();
      this.#listeners.set(id, listener);
      if (first) await requireFreePort(address);
      const port = await listener.listen(address);
      // The port was closed, or the thread stopped, before it had opened.
      if (this.#listeners.get(id) !== listener) {
        await listener.close(0);
        throw new Error('the port was given up while it opened');
      }
      this.#options.post({ type: 'listening', listener: id, port });
    } catch (error) {
      this.#listeners.delete(id);
      this.#options.post({ type: 'listen-failed', listener: id, message: messageOf(error) });
    }
  }

  #plainListener(): HttpListener {
    const { limits } = this.#options.settings;
    return new HttpListener({
      handler: this.#router,
      limits: limits.http,
      gate: this.#admission.gate,
      onError: (error) => this.#log('error', { err: error }, 'an HTTP listener failed'),
      date: this.#date,
      commonHeaders: COMMON_HEADERS,
      counters: this.#counters,
      answers: this.#answers,
      onOpened: (connection) => {
        if (this.#logConnections) this.#log('debug', { peer: connection.remoteAddress }, 'HTTP connection opened');
      },
      onClosed: (connection, reason) => {
        if (!this.#logConnections) return;
        const fields = { peer: connection.remoteAddress, requests: connection.requests };
        this.#log('debug', fields, `HTTP connection closed: ${reason}`);
      },
    });
  }

  #secureListener(): DirectSecureListener | SecureListener {
    const { limits, http2 } = this.#options.settings;
    const foreign = this.#foreign;
    const options = {
      handler: this.#router,
      limits: limits.http,
      commonHeaders: COMMON_HEADERS,
      counters: this.#counters,
      gate: this.#admission.gate,
      onError: (error: Error) => this.#log('error', { err: error }, 'an HTTPS listener failed'),
      http2,
      onOpened: (peer: string) => {
        if (this.#logConnections) this.#log('debug', { peer, tls: true }, 'HTTP connection opened');
      },
      onClosed: (peer: string, reason: string) => {
        if (this.#logConnections) this.#log('debug', { peer, tls: true }, `HTTP connection closed: ${reason}`);
      },
    };
    const listener =
      DirectSecureListener.create({ ...options, date: this.#date }) ??
      new SecureListener({
        ...options,
        ...(foreign !== null && { onUpgrade: (socket, bytes, ends) => foreign.takeUpgrade(socket, bytes, ends) }),
      });
    listener.setCertificates(this.#certificates);
    return listener;
  }

  async #unlisten(id: number): Promise<void> {
    const listener = this.#listeners.get(id);
    this.#listeners.delete(id);
    await listener?.close(this.#options.settings.limits.stopGrace);
  }

  #report(): void {
    this.#answers?.collect();
    this.#answers?.sweep(this.#options.settings.limits.http.sendTime);
    this.#sessions.sweep();
    this.#services.hot.sweep();
    const bytes: number[] = [];
    this.#feeds.takeBytes((feed, count) => bytes.push(feed, count));
    let connections = 0;
    for (const listener of this.#listeners.values()) connections += listener.connections;
    const report: ThreadReport = {
      type: 'report',
      http: { ...this.#counters, statuses: [...this.#counters.statuses] },
      connections,
      waiting: this.#services.waiting.size + (this.#answers?.waiting ?? 0) + this.#demands.waiting + this.#webhooks.waiting,
      sessions: this.#sessions.size,
      ...(this.#answers?.figures ?? NO_ANSWERS),
      blocksInFlight: this.#blocks.inFlight,
      hot: this.#services.hot.figures,
      bytes,
      readFeeds: this.#feeds.takeRead(),
      sessionBytes: this.#sessions.takeBytes(),
      sessionEvents: this.#sessionEvents(),
      keyUses: this.#access.keys.takeUses(),
      refusals: this.#access.refusals.take(),
      controlServers: this.#webhooks.figures,
      // Last: a report that fails must not lose them.
      idleBlocks: this.#idleBlocks.splice(0),
    };
    this.#options.post(report);
    this.#feeds.look();
    this.#catchUp.look(connections, this.#counters.opened);
  }

  #sessionEvents(): readonly SessionEvent[] {
    const events = this.#sessions.takeEvents();
    if (this.#webhooks.size === 0) return events;
    return events.map((event) => (event.ticket === undefined ? event : { ...event, record: this.#webhooks.recordOf(event.ticket) }));
  }

  /** Ports first, then streams (waiting requests are answered), then the remaining connections. */
  async #stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    const closing = [...this.#listeners.keys()].map((id) => this.#unlisten(id));
    this.#feeds.closeAll();
    this.#demands.close();
    const told = this.#webhooks.stop();
    for (const delivery of [...this.#services.waiting]) delivery.withdraw(503, RefusalText.STOPPING);
    await Promise.all([told, ...closing]);
    this.#foreign?.close();
    this.#services.hot.close();
    this.#admission.close();
    clearInterval(this.#reporter);
    this.#report();
    this.#options.post({ type: 'stopped' });
  }

  #log(level: 'debug' | 'info' | 'warn' | 'error', fields: object, message: string): void {
    this.#options.post({ type: 'log', level, fields, message });
  }
}
