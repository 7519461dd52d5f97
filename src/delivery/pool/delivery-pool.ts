/** The delivery threads from the main thread's side: starts and restarts them, sends them the state, sums up their reports. */
import { randomBytes } from 'node:crypto';
import type { ControlServerFigures } from '../../access/control-server.ts';
import type { CrossDomainRules } from '../../access/cross-domains.ts';
import type { WantedStream } from '../../core/origins.ts';
import type { SessionHandle } from '../../core/publishing.ts';
import type { StreamPresence } from '../../core/unknown-stream.ts';
import { hostOf } from '../../transport/tcp/shared-port.ts';
import { growingPause } from '../../util/growing-pause.ts';
import { guarded } from '../../util/guarded.ts';
import type { QueueGauge } from '../../util/queue-gauge.ts';
import { OPEN_ADMISSION } from '../admission.ts';
import type { DeliveryFeed, FeedOpener } from '../feed/messages.ts';
import { sessionId } from '../session-token.ts';
import type { DeliveryLimits, FromThread, ListenRequest, ServedHost, SessionSighting, ThreadReport, ToThread } from '../thread-protocol.ts';
import type { Certificate } from '../tls/certificate-index.ts';
import { type ActivationPort, ActivationPorts } from './activation-port.ts';
import { BatchingLink, MAX_BATCH } from './batching-link.ts';
import { ControlFigures } from './control-figures.ts';
import { DEFAULT_DELIVERY_LIMITS } from './delivery-limits.ts';
import type { DeliveryPoolOptions } from './delivery-pool-options.ts';
import type { DeliveryStatus } from './delivery-status.ts';
import { Handovers } from './handovers.ts';
import { HttpFigures, type HttpTotals } from './http-figures.ts';
import type { startLocal } from './local-thread.ts';
import { type FeedOwner, type FeedRequest, PoolFeed } from './pool-feed.ts';
import { PortRegistry } from './port-registry.ts';
import { SessionLedger } from './session-ledger.ts';
import { SharedArena } from './shared-arena.ts';
import { startWorker } from './thread-link.ts';
import { ThreadOutbox } from './thread-outbox.ts';
import { emptySlot, type ThreadSlot } from './thread-slot.ts';
import { ViewerAdmissions } from './viewer-admissions.ts';
import { workerEntry } from './worker-entry.ts';

const MAX_FREE_BYTES = 16 * 1024 * 1024;
const FIRST_RESTART_DELAY = 100;
const MAX_RESTART_DELAY = 10_000;
/** A thread that ran this long has recovered. */
const HEALTHY_AFTER = 60_000;
const MAX_REVOKED = 100_000;

/** Owns threads, ports, feeds and their memory from `start` to `stop`. A thread that dies is restarted and gets the whole state again. */
export class DeliveryPool implements FeedOpener {
  readonly #options: DeliveryPoolOptions;
  readonly #limits: DeliveryLimits;
  readonly #secret = randomBytes(32);
  readonly #slots: ThreadSlot[];
  readonly #feeds = new Map<number, PoolFeed>();
  readonly #ledger: SessionLedger;
  readonly #admissions: ViewerAdmissions;
  readonly #controlServers = new ControlFigures();
  readonly #http = new HttpFigures();
  readonly #arena: SharedArena;
  readonly #ports: PortRegistry;
  /** Not null until the threads start. */
  #activationPorts: ActivationPorts | null = null;
  readonly #handovers = new Handovers();
  readonly #outbox: ThreadOutbox;
  readonly #revoked = new Set<string>();
  readonly #feedOwner: FeedOwner;
  /** Unix socket where signalling is served. */
  #foreign: string | null = null;
  #hosts: readonly ServedHost[] = [];
  #crossDomains: CrossDomainRules = { urls: [], headers: [] };
  #certificates: readonly Certificate[] = [];
  #draining = false;
  #logConnections: boolean;
  #nextFeed = 1;
  #nextThread = 1;
  #restarts = 0;
  #starting: { readonly missing: Set<ThreadSlot>; readonly resolve: () => void; readonly reject: (error: Error) => void } | null = null;
  /** Null: threads are workers. */
  #startLocal: typeof startLocal | null = null;
  #stopping = false;
  #stopped: (() => void) | null = null;

  constructor(options: DeliveryPoolOptions) {
    this.#options = options;
    this.#limits = options.limits ?? DEFAULT_DELIVERY_LIMITS;
    this.#logConnections = options.logConnections ?? false;
    this.#slots = Array.from({ length: Math.max(1, options.threads) }, () => emptySlot());
    this.#outbox = new ThreadOutbox(this.#guarded('a message to the delivery threads', () => this.#flush()));
    this.#ledger = new SessionLedger({
      sessionOpened: (sighting) => this.#sessionOpened(sighting),
      sessionClosed: (sighting, reason) => this.#sessionClosed(sighting, reason),
    });
    const { judge, adopt, clock, logger } = options;
    this.#admissions = new ViewerAdmissions({
      ...{ judge, adopt, clock, logger },
      onOver: () => this.#outbox.schedule(),
      revoke: (sessions) => this.revokeSessions(sessions),
      isThere: (sighting) => this.#ledger.has(sighting),
    });
    this.#arena = new SharedArena({
      post: (message) => this.#outbox.post(message),
      postLate: (message) => this.#outbox.postLate(message),
      threads: () => this.#threads(),
      maxFreeBytes: MAX_FREE_BYTES,
      now: () => clock.monotonic(),
    });
    this.#feedOwner = {
      post: (message) => this.#outbox.post(message),
      feedClosed: (closed) => this.#feedClosed(closed),
    };
    this.#ports = new PortRegistry({
      threads: () => this.#threads(),
      post: (thread, message) => this.#postTo(thread, message),
      onFailed: (thread, port, message) =>
        options.logger.error({ thread, port, error: message }, 'a delivery thread could not open a port'),
    });
  }

  /** Relays signalling to the Unix socket at `path`; without one it is refused. Applies to threads started afterwards. */
  relaySignalling(path: string): void {
    this.#foreign = path;
  }

  /** Starts the threads; resolves when all run, or when ports wait for the first connection; rejects if a thread cannot start. */
  async start(): Promise<void> {
    if (this.#options.threads === 0) this.#startLocal = (await import('./local-thread.ts')).startLocal;
    else if (this.#options.sleeps === true) this.#activationPorts = ActivationPorts.load();
    // Queues are listed from the beginning.
    if (this.#activationPorts !== null) for (const slot of this.#slots) slot.gauge = this.#gaugeOf(slot);
    if (this.#stopping || this.#activationPorts !== null) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#starting = { missing: new Set(this.#slots), resolve, reject };
    for (const slot of this.#slots) this.#startThread(slot);
    await promise;
  }

  /** Opens a port in all running threads; resolves with its number. Rejects if it cannot be bound. */
  async listen(request: ListenRequest): Promise<{ readonly id: number; readonly port: number }> {
    const { id, opened } = this.#ports.open(request, await this.#activationPortFor(request));
    return { id, port: await opened };
  }

  /** Closes a port; connections end after the answer in progress. */
  unlisten(id: number): void {
    if (this.#ports.close(id)) this.#outbox.post({ type: 'unlisten', listener: id });
  }

  setHosts(hosts: readonly ServedHost[]): void {
    this.#hosts = hosts;
    this.#controlServers.follow(hosts);
    this.#outbox.post({ type: 'hosts', hosts });
  }

  setDefaultCrossDomains(rules: CrossDomainRules): void {
    this.#crossDomains = rules;
    this.#outbox.post({ type: 'default-cross-domains', rules });
  }

  /** Whether new viewers are refused. */
  setDraining(on: boolean): void {
    this.#draining = on;
    this.#outbox.post({ type: 'draining', on });
  }

  /** Whether HTTP connections are logged at level debug when they open and end, from now on. */
  logConnections(on: boolean): void {
    this.#logConnections = on;
    this.#outbox.post({ type: 'log-connections', on });
  }

  /**
   * Certificates of all virtual hosts, for all TLS ports; replaces the previous ones without touching connections. Resolves when no thread
   * uses the previous ones for handshakes.
   */
  setCertificates(certificates: readonly Certificate[]): Promise<void> {
    this.#certificates = certificates;
    const { number: handover, done } = this.#handovers.begin(this.#threads());
    this.#outbox.post({ type: 'certificates', certificates, handover });
    return done;
  }

  /** Refuses these viewer sessions (tokens or their ids) from now on. */
  revokeSessions(sessions: readonly string[]): void {
    for (const session of sessions) this.#revoked.add(sessionId(session));
    for (const oldest of this.#revoked) {
      if (this.#revoked.size <= MAX_REVOKED) break;
      this.#revoked.delete(oldest);
    }
    this.#outbox.post({ type: 'revoke', sessions });
  }

  openFeed(request: FeedRequest): DeliveryFeed {
    if (this.#stopping) throw new TypeError('the delivery pool is stopping');
    const feed = new PoolFeed(this.#nextFeed, request, this.#arena.writer(request.bytesPerSecond), this.#feedOwner);
    this.#nextFeed += 1;
    this.#feeds.set(feed.id, feed);
    return feed;
  }

  status(): DeliveryStatus {
    return {
      threads: this.#slots.map(({ thread, report, link }) => ({ thread, report, resting: link?.resting === true })),
      restarts: this.#restarts,
      feeds: this.#feeds.size,
      sessions: this.#ledger.size,
      memory: this.#arena.usage,
    };
  }

  /** Feeds that a reader without a session has read within the lifetime of an idle session. */
  get readFeeds(): number {
    const since = this.#options.clock.monotonic() - this.#limits.sessionIdle;
    let count = 0;
    for (const { readAt } of this.#feeds.values()) if (readAt > since) count += 1;
    return count;
  }

  /** The threads' figures of requests to control servers. */
  get controlServers(): readonly ControlServerFigures[] {
    return this.#controlServers.all;
  }

  get http(): HttpTotals {
    return this.#http.totals;
  }

  /** Closes ports, ends streams, lets answers in progress finish for a moment, ends the threads. Idempotent. */
  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#handovers.close();
    this.#ports.stop();
    for (const slot of this.#slots) if (slot.restart !== null) clearTimeout(slot.restart);
    for (const feed of [...this.#feeds.values()]) feed.close();
    this.#outbox.post({ type: 'stop' });
    this.#flush();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#stopped = resolve;
    if (this.#threads().length === 0) resolve();
    const deadline = setTimeout(resolve, this.#limits.stopGrace + 2_000);
    await promise;
    clearTimeout(deadline);
    await Promise.all(this.#slots.map((slot) => slot.link?.terminate()));
    this.#admissions.close();
  }

  #feedClosed(feed: PoolFeed): void {
    this.#ledger.feedGone(feed.id);
    this.#feeds.delete(feed.id);
  }

  #sessionOpened(sighting: SessionSighting): SessionHandle | null {
    const feed = this.#feeds.get(sighting.feed);
    if (feed === undefined) return null;
    this.#options.logger.limited.info(feed.fieldsOf(sighting), 'viewer session opened');
    const { openSession } = feed.request;
    const { session: id, remoteAddress: client } = sighting;
    return openSession === null ? null : openSession({ id, client, onTerminate: () => this.revokeSessions([id]) });
  }

  #sessionClosed(sighting: SessionSighting, reason: string): void {
    this.#admissions.sessionOver(sighting);
    const feed = this.#feeds.get(sighting.feed);
    if (feed === undefined) return;
    this.#options.logger.limited.info(feed.fieldsOf(sighting), `viewer session closed: ${reason}`);
  }

  #threads(): readonly number[] {
    return this.#slots.filter((slot) => slot.link !== null).map((slot) => slot.thread);
  }

  #postTo(thread: number, message: ToThread): void {
    this.#flush();
    this.#linkOf(thread)?.post([message]);
  }

  #linkOf(thread: number): BatchingLink | null {
    return this.#slots.find((slot) => slot.thread === thread)?.link ?? null;
  }

  #guarded<Given extends readonly unknown[]>(what: string, action: (...given: Given) => void): (...given: Given) => void {
    return guarded(this.#options.logger, what, action);
  }

  #flush(): void {
    for (const [thread, tickets] of this.#admissions.takeOver()) this.#linkOf(thread)?.post([{ type: 'admissions-over', tickets }]);
    const messages = this.#outbox.take();
    if (messages.length > 0) for (const slot of this.#slots) slot.link?.post(messages);
  }

  /** One gauge per slot: a restarted thread keeps the gauge of its predecessor. */
  #gaugeOf(slot: ThreadSlot): QueueGauge | null {
    const { queues } = this.#options;
    if (queues === undefined || slot.gauge !== null) return slot.gauge;
    const urn = `mngq:p=pub:r=appworker_[egress]_${this.#slots.indexOf(slot)}`;
    return queues.gauge({ urn, type: 'ToThread', threshold: MAX_BATCH });
  }

  #startThread(slot: ThreadSlot): void {
    // Queued messages are for running threads; the new one gets them in its replay.
    this.#flush();
    const thread = this.#nextThread;
    this.#nextThread += 1;
    const { http2 = true, pages = null, workerEntry: entry = workerEntry(), views, clock } = this.#options;
    const { admission: plan = OPEN_ADMISSION } = this.#options;
    // The main thread has the first slot of the shared ledger.
    const admission = { ...plan, threads: this.#slots.length, slot: this.#slots.indexOf(slot) + 1 };
    const settings = {
      incarnation: thread,
      secret: this.#secret,
      limits: this.#limits,
      admission,
      http2,
      foreign: this.#foreign,
      logConnections: this.#logConnections,
      pages,
    };
    const owner = {
      message: this.#guarded('a message of a delivery thread', (message: FromThread) => this.#receive(slot, thread, message)),
      exited: this.#guarded('the end of a delivery thread', (reason: string) => this.#exited(slot, thread, reason)),
    };
    slot.thread = thread;
    slot.startedAt = clock.monotonic();
    slot.restart = null;
    slot.gauge = this.#gaugeOf(slot);
    const link = this.#startLocal?.(views, clock, settings, owner) ?? startWorker(entry, settings, owner);
    slot.link = new BatchingLink(link, slot.gauge);
    slot.link.post([...this.#replay()]);
    this.#ports.threadStarted(thread);
  }

  *#replay(): Iterable<ToThread> {
    yield { type: 'hosts', hosts: this.#hosts };
    yield { type: 'default-cross-domains', rules: this.#crossDomains };
    if (this.#draining) yield { type: 'draining', on: true };
    yield { type: 'certificates', certificates: this.#certificates, handover: 0 };
    if (this.#revoked.size > 0) yield { type: 'revoke', sessions: [...this.#revoked] };
    yield* this.#arena.replay();
    for (const feed of this.#feeds.values()) yield* feed.replay();
  }

  #receive(slot: ThreadSlot, thread: number, message: FromThread): void {
    const { logger } = this.#options;
    switch (message.type) {
      case 'ready':
        this.#ready(slot);
        break;
      case 'listening':
        this.#ports.listening(thread, message.listener, message.port);
        break;
      case 'listen-failed':
        this.#ports.failed(thread, message.listener, message.message);
        break;
      case 'applied':
        this.#handovers.applied(thread, message.handover);
        break;
      case 'demand':
        void this.#find(thread, message.question, message.wanted);
        break;
      case 'catch-up':
        this.#flush();
        this.#catchUp(slot, message.wanted);
        break;
      case 'feed-watched':
        this.#feeds.get(message.feed)?.setWatched(thread, message.wanted);
        break;
      case 'log':
        logger[message.level]({ thread, ...message.fields }, message.message);
        break;
      case 'report':
        slot.report = message;
        for (const block of message.idleBlocks) this.#arena.acknowledge(thread, block);
        this.#count(thread, message);
        break;
      case 'stopped':
        this.#admissions.threadStopped(thread);
        break;
    }
  }

  #catchUp(slot: ThreadSlot, wanted: boolean): void {
    const before = this.#slots.some(({ link }) => link?.resting === false);
    if (wanted) slot.link?.resume();
    else slot.link?.rest();
    if (!wanted) this.#leave(slot.thread);
    else if (!before) this.#options.onWatched?.();
  }

  /** The thread has no viewers. */
  #leave(thread: number): void {
    for (const feed of this.#feeds.values()) feed.setWatched(thread, false);
  }

  async #find(thread: number, question: number, wanted: WantedStream): Promise<void> {
    let found: StreamPresence = false;
    try {
      found = (await this.#options.find?.(wanted)) ?? false;
    } catch (error) {
      this.#options.logger.limited.error({ err: error, stream: `${wanted.app}/${wanted.stream}` }, 'the lookup of a stream failed');
    }
    this.#postTo(thread, { type: 'demand-answer', question, found });
  }

  async #activationPortFor(request: ListenRequest): Promise<ActivationPort | null> {
    const activationPorts = this.#activationPorts;
    if (activationPorts === null) return null;
    const knocked = this.#guarded('the first connection', () => this.#wake());
    const held = await activationPorts.open({ host: hostOf(request), port: request.port }, knocked);
    if (!this.#stopping) return held;
    held.close();
    throw new Error('the delivery pool is stopping');
  }

  /** The first client has connected: the threads take over the ports. */
  #wake(): void {
    if (this.#activationPorts === null || this.#stopping) return;
    this.#activationPorts = null;
    this.#options.logger.info({ threads: this.#slots.length }, 'the first connection over HTTP: the delivery threads start');
    for (const slot of this.#slots) this.#restart(slot);
    this.#options.onWatched?.();
  }

  #ready(slot: ThreadSlot): void {
    const starting = this.#starting;
    if (starting === null) return;
    starting.missing.delete(slot);
    if (starting.missing.size > 0) return;
    this.#starting = null;
    starting.resolve();
  }

  #count(thread: number, report: ThreadReport): void {
    for (const event of report.sessionEvents) {
      const { sighting, ended } = event;
      const exists = this.#feeds.has(sighting.feed);
      if (ended !== null) this.#ledger.closed(thread, sighting, ended);
      else if (exists) this.#ledger.opened(thread, sighting);
      if (ended === null) this.#admissions.seen(thread, event, exists);
    }
    for (const id of report.readFeeds) this.#feeds.get(id)?.wasRead(this.#options.clock.monotonic());
    this.#controlServers.set(thread, report.controlServers);
    this.#http.set(thread, report);
    this.#ledger.countBytes(report.sessionBytes);
    if (report.keyUses.length > 0) this.#options.onKeyUses?.(report.keyUses);
    if (report.refusals.length > 0) this.#options.onRefusals?.(report.refusals);
    for (let at = 0; at + 1 < report.bytes.length; at += 2) {
      this.#feeds.get(report.bytes[at] ?? 0)?.request.onBytesSent(report.bytes[at + 1] ?? 0);
    }
  }

  #exited(slot: ThreadSlot, thread: number, reason: string): void {
    if (slot.thread !== thread) return;
    slot.link?.close();
    slot.link = null;
    slot.report = null;
    this.#leave(thread);
    // Sessions that end with the thread must end before its admissions are taken over.
    this.#admissions.threadGone(thread);
    this.#ledger.threadGone(thread);
    this.#controlServers.threadGone(thread);
    this.#http.threadGone(thread);
    this.#arena.threadGone(thread);
    this.#ports.threadGone(thread);
    this.#handovers.threadGone(thread);
    if (this.#stopping) {
      if (this.#threads().length === 0) this.#stopped?.();
      return;
    }
    if (this.#starting !== null) {
      this.#starting.reject(new Error(`a delivery thread could not start: ${reason}`));
      return;
    }
    const { logger, clock } = this.#options;
    if (clock.monotonic() - slot.startedAt > HEALTHY_AFTER) slot.failures = 0;
    const delay = slot.failures === 0 ? 0 : growingPause(slot.failures, FIRST_RESTART_DELAY, MAX_RESTART_DELAY);
    slot.failures += 1;
    this.#restarts += 1;
    logger.error({ thread, reason, restartIn: delay }, 'a delivery thread ended; it is started again');
    slot.restart = setTimeout(() => this.#restart(slot), delay);
  }

  /** A system without memory or descriptors may be able to start a thread later. */
  #restart(slot: ThreadSlot): void {
    try {
      this.#startThread(slot);
    } catch (error) {
      this.#options.logger.error({ err: error }, 'a delivery thread could not be started: the server tries again');
      slot.link = null;
      slot.restart = setTimeout(() => this.#restart(slot), MAX_RESTART_DELAY);
    }
  }
}
