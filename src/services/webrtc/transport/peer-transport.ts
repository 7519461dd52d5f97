/** The media ports: passes arriving packets to the sessions of their peers. */
import { createServer, isIP, type Server, type Socket } from 'node:net';
import { isLoopback } from '../../../util/client-address.ts';
import type { Clock } from '../../../util/clock.ts';
import type { DescriptorLedger } from '../../../util/descriptor-ledger.ts';
import { forEachGuarded, guarded } from '../../../util/guarded.ts';
import { ownFamily } from '../../../util/listen-addresses.ts';
import type { Logger } from '../../../util/logger.ts';
import { messageOf } from '../../../util/message-of.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import type { TimeoutScale } from '../../../util/timeout-scale.ts';
import { formatCandidate, type IceCandidate } from '../../../wire/ice/ice-candidate.ts';
import { checkRequest } from '../../../wire/ice/ice-lite.ts';
import { transactionKey } from '../../../wire/ice/own-check.ts';
import { TcpFramer } from '../../../wire/ice/tcp-framer.ts';
import { isStunAuthentic, parseStun, StunType, stunTypeOf } from '../../../wire/stun/stun-message.ts';
import { type PortGroup, wildcardOf } from '../candidate-ports.ts';
import type { AddressWatch } from './address-watch.ts';
import { createCertificate } from './dtls-certificate.ts';
import type { Fanout, PeerAddress } from './fanout/fanout.ts';
import type { SendMode } from './fanout/native-fanout.ts';
import { openFanout } from './fanout/open-fanout.ts';
import { type PeerPath, placeOfPath } from './peer-paths.ts';
import { DirectPipe, type PeerPipe } from './peer-pipe.ts';
import { PeerPlaces } from './peer-places.ts';
import { type PeerListener, type PeerOwner, PeerSession, type PeerSessionOptions } from './peer-session.ts';
import { admitStream, StreamGuests } from './peer-stream.ts';
import { type PeerShares, type PeerUse, SessionQuota } from './session-quota.ts';
import { StrangerLog } from './stranger-log.ts';
import { type TransportCounters, TransportReport } from './transport-report.ts';

const TICK_MS = 250;
/** A TCP connection without a valid connectivity check is closed after this, ms. */
const TCP_TIMEOUT_MS = 10_000;
const MAX_TCP_CONNECTIONS = 5000;
/** Minimum time between equal warnings, ms. */
const WARN_INTERVAL_MS = 60_000;
/** Maximum of open sessions, including those in negotiation. */
export const MAX_PEER_SESSIONS = 20_000;

/** UDP ports with the addresses told to players, and to publishers; a port may serve both. */
export interface PeerPorts {
  readonly ports: readonly PortGroup[];
  readonly publishPorts?: readonly PortGroup[];
}

/** The ports to open, and their addresses for peers. */
export interface PeerTransportOptions extends PeerPorts {
  /** The present ports, for machines whose addresses change; new ports are not opened. */
  readonly current?: AddressWatch<PeerPorts>;
  /** Also accept TCP on the same port numbers (RFC 6544). */
  readonly tcp: boolean;
  readonly threads: number;
  /** Sessions of one address. */
  readonly shares?: PeerShares;
  /** File descriptors of all viewers: connections by TCP take some. */
  readonly descriptors?: DescriptorLedger;
  /** The way of sending datagrams, for benches. */
  readonly sendMode?: SendMode;
  readonly clock: Clock;
  readonly logger: Logger;
  /** For the time limits of TCP connections. */
  readonly timeoutScale?: TimeoutScale;
}

interface OpenPort {
  readonly port: number;
  readonly tcp: boolean;
}

/** Owns ports, fanout and sessions; the server closes it behind publisher and provider. */
export class PeerTransport implements PeerOwner {
  readonly fanout: Fanout;
  /** SHA-256 of our certificate, as SDP writes it. */
  readonly fingerprint: string;
  readonly strangers = new StrangerLog();
  readonly places = new PeerPlaces<PeerSession>();
  /** Bounded by each session. */
  readonly awaited = new Map<string, PeerSession>();
  /** Connections by TCP, including those of the relay. */
  readonly guests: StreamGuests;
  readonly #options: PeerTransportOptions;
  readonly #quota: SessionQuota;
  readonly #report = new TransportReport();
  readonly #sessions = new Map<string, PeerSession>();
  readonly #viewers = new Map<number, PeerSession>();
  /** By address and number as configured. */
  readonly #ports = new Map<string, OpenPort>();
  /** Candidates of each port number, in announced form, IPv4 and IPv6 together: a peer has one or the other. */
  readonly #groups: Record<PeerUse, Map<number, readonly string[]>> = { play: new Map(), publish: new Map() };
  readonly #servers: Server[] = [];
  readonly #streams = new Set<Socket>();
  readonly #ticker: NodeJS.Timeout;
  #described: PeerPorts;
  #warnedAt = Number.NEGATIVE_INFINITY;
  #next = 0;
  #malformed = 0;
  #closed = false;

  private constructor(options: PeerTransportOptions) {
    this.#options = options;
    this.#described = options;
    this.#quota = new SessionQuota(options.shares);
    this.guests = new StreamGuests(options.descriptors);
    const certificate = createCertificate(options.clock.now());
    this.fingerprint = certificate.fingerprint;
    const { fanout, fallback } = openFanout({
      certificate,
      threads: options.threads,
      sendMode: options.sendMode,
      listener: {
        stun: guarded(options.logger, 'a connectivity check', (socket, from, datagram) => {
          this.#stun({ kind: 'udp', socket, to: from }, from, datagram);
        }),
        dtls: guarded(options.logger, 'a handshake', (socket, from, datagram) =>
          this.#handshake({ kind: 'udp', socket, to: from }, datagram),
        ),
        rtcp: (viewer, packet) => this.#forViewer(viewer, (session) => session.rtcp(packet)),
        rtp: (viewer, packet, at) => {
          const session = this.#viewers.get(viewer);
          // No closure: thousands of packets come a second.
          try {
            session?.rtp(packet, at);
          } catch (error) {
            this.#failed(session, error);
          }
        },
        tcp: (viewer, frames) => this.#forViewer(viewer, (session) => session.sendTcp(frames)),
      },
    });
    this.fanout = fanout;
    if (fallback !== null) {
      options.logger.warn({ reason: fallback }, 'WebRTC is sent from JavaScript, at several times the CPU: the native addon is not used');
    }
    this.#ticker = setInterval(
      guarded(options.logger, 'the watch over WebRTC sessions', () => this.#tick()),
      TICK_MS,
    );
  }

  /** Opens the ports. Rejects with the UDP port that could not be opened. */
  static async open(options: PeerTransportOptions): Promise<PeerTransport> {
    const transport = new PeerTransport(options);
    const { ports, publishPorts = [] } = options;
    try {
      // A port that is open on all addresses cannot be opened on one of them as well, and needs no opening there.
      for (const { host, port } of [...ports, ...publishPorts]) if (host === wildcardOf(host)) await transport.#bindOnce(host, port);
      for (const { host, port } of [...ports, ...publishPorts]) {
        if (!transport.#ports.has(`${wildcardOf(host)} ${port}`)) await transport.#bindOnce(host, port);
      }
      transport.#describe(options);
    } catch (error) {
      await transport.close();
      throw error;
    }
    return transport;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  /** Counts since the ports were opened. */
  counters(): TransportCounters {
    return { ...this.fanout.counters(), malformed: this.#malformed, turnedAway: this.#quota.turnedAway + this.guests.turnedAway };
  }

  now(): number {
    return this.#options.clock.monotonic();
  }

  /** Wall clock, ms. */
  wall(): number {
    return this.#options.clock.now();
  }

  /** Throws ProtocolError `WEBRTC_FULL` when there are too many, or too many that never connect. */
  openSession(listener: PeerListener, options: PeerSessionOptions): PeerSession {
    if (this.#sessions.size >= MAX_PEER_SESSIONS)
      throw new ProtocolError('WEBRTC_FULL', `${MAX_PEER_SESSIONS} WebRTC sessions are open already`);
    this.#quota.check(options.use, options.client);
    const session = new PeerSession(this, listener, options);
    this.#quota.enter(session, options.use, options.client);
    this.#sessions.set(session.credentials.ufrag, session);
    return session;
  }

  /** Candidates of one port number, all its addresses: numbers take turns. */
  candidates(use: PeerUse = 'play', client = ''): readonly string[] {
    this.#refresh();
    const groups = [...this.#groups[use].values()];
    const group = groups[this.#next % Math.max(1, groups.length)] ?? [];
    this.#next += 1;
    if (isIP(client) !== 0 && !isLoopback(client)) this.#warnOfLoopback(group, client);
    return group;
  }

  started(session: PeerSession): void {
    this.#viewers.set(session.viewer, session);
  }

  connected(session: PeerSession): void {
    this.#quota.settle(session);
  }

  /** For ended sessions. */
  forget(session: PeerSession): void {
    this.#quota.leave(session);
    this.#sessions.delete(session.credentials.ufrag);
    this.#viewers.delete(session.viewer);
    this.places.forget(session);
  }

  /** Closes sessions and ports. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#ticker);
    for (const session of [...this.#sessions.values()]) session.fail('the server stops');
    for (const stream of this.#streams) stream.destroy();
    for (const server of this.#servers) server.close();
    this.#options.logger.info(this.counters(), 'the media ports of WebRTC are closed');
    this.fanout.close();
  }

  /** A datagram from a pipe, of `session` if known; returns the session that owns the pipe now. */
  arrived(pipe: PeerPipe, from: PeerAddress, datagram: Buffer, session: PeerSession | null): PeerSession | null {
    const first = datagram[0] ?? 0xff;
    if (first <= 3) return this.#stun({ kind: 'tcp', pipe }, from, datagram) ?? session;
    if (first >= 20 && first <= 63) session?.handshake(datagram);
    else if (first >= 128 && first <= 191) session?.packet(datagram);
    return session;
  }

  /** Candidates follow the addresses of the machine. */
  #refresh(): void {
    const now = this.#options.current?.value;
    if (now === undefined || now === this.#described) return;
    const before = this.#told();
    this.#describe(now);
    const told = this.#told();
    if (told !== before)
      this.#options.logger.info({ before }, `the addresses of this machine have changed: WebRTC candidates are now ${told}`);
  }

  #describe(ports: PeerPorts): void {
    this.#described = ports;
    for (const [use, groups] of [['play', ports.ports] as const, ['publish', ports.publishPorts ?? []] as const]) {
      this.#groups[use].clear();
      for (const group of groups) this.#group(use, group);
    }
  }

  /** Does nothing for a port that is not open. */
  #group(use: PeerUse, { host, port, addresses }: PortGroup): void {
    const open = this.#ports.get(`${wildcardOf(host)} ${port}`) ?? this.#ports.get(`${host} ${port}`);
    if (open === undefined) return;
    const protocols: readonly IceCandidate['protocol'][] = open.tcp ? ['UDP', 'TCP'] : ['UDP'];
    const candidates = protocols.flatMap((protocol) => addresses.map((address) => formatCandidate({ protocol, address, port: open.port })));
    this.#groups[use].set(open.port, [...new Set([...(this.#groups[use].get(open.port) ?? []), ...candidates])]);
  }

  #told(): string {
    const candidates = Object.values(this.#groups).flatMap((groups) => [...groups.values()].flat());
    return [...new Set(candidates.map(addressOf))].join(', ');
  }

  #warnOfLoopback(candidates: readonly string[], client: string): void {
    const now = this.now();
    if (now - this.#warnedAt < WARN_INTERVAL_MS || !candidates.every((candidate) => isLoopback(addressOf(candidate)))) return;
    this.#warnedAt = now;
    this.#options.logger.warn(
      { peer: client, candidates },
      'a WebRTC peer on another machine gets loopback addresses only, which it cannot reach: name an address of this machine in IceCandidates',
    );
  }

  async #bindOnce(host: string, port: number): Promise<OpenPort> {
    const key = `${host} ${port}`;
    const open = this.#ports.get(key) ?? (await this.#bind(host, port));
    this.#ports.set(key, open);
    return open;
  }

  async #bind(host: string, port: number): Promise<OpenPort> {
    let bound: { socket: number; port: number };
    try {
      bound = await this.fanout.bind(host, port);
    } catch (error) {
      throw new Error(`UDP port ${port} of ${host} cannot be opened: ${messageOf(error)}`, {
        cause: error,
      });
    }
    return { port: bound.port, tcp: this.#options.tcp && (await this.#listen(host, bound.port)) };
  }

  /** False if another process has the TCP port: media then uses UDP, as configured. */
  #listen(host: string, port: number): Promise<boolean> {
    const { logger } = this.#options;
    const server = createServer({ noDelay: true }, (stream) => this.#accept(stream));
    server.maxConnections = MAX_TCP_CONNECTIONS;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    server.once('error', (error) => {
      logger.warn({ host, port, reason: error.message }, `media over TCP is not offered: port ${port} cannot be opened`);
      resolve(false);
    });
    server.listen({ ...ownFamily(host), port }, () => {
      server.removeAllListeners('error');
      server.on('error', (error) => logger.error({ err: error, port }, 'the TCP port for media failed'));
      this.#servers.push(server);
      resolve(true);
    });
    return promise;
  }

  #accept(stream: Socket): void {
    const from = admitStream(stream, this.guests);
    if (from === null) return;
    const framer = new TcpFramer();
    const pipe = new DirectPipe(stream, from);
    let session: PeerSession | null = null;
    // A session ends its own connections.
    const unused = setTimeout(() => stream.destroy(), TCP_TIMEOUT_MS * (this.#options.timeoutScale ?? 1));
    this.#streams.add(stream);
    stream.on('data', (chunk: Buffer) => {
      try {
        const frames = framer.push(chunk);
        if (frames === null) {
          this.#options.logger.limited.info({ peer: from.host }, 'a TCP connection for media was closed: it does not speak ICE');
          stream.destroy();
        }
        for (const frame of frames ?? []) session = this.arrived(pipe, from, frame, session);
        if (session === null) return;
        clearTimeout(unused);
        this.guests.leave(stream);
      } catch (error) {
        this.#options.logger.limited.error({ err: error, peer: from.host }, 'a TCP connection for media failed inside the server');
        stream.destroy();
      }
    });
    stream.on('error', () => undefined);
    stream.on('close', () => {
      clearTimeout(unused);
      this.#streams.delete(stream);
      try {
        session?.lost(pipe);
      } catch (error) {
        this.#failed(session ?? undefined, error);
      }
    });
  }

  #forViewer(viewer: number, action: (session: PeerSession) => void): void {
    const session = this.#viewers.get(viewer);
    if (session === undefined) return;
    try {
      action(session);
    } catch (error) {
      this.#failed(session, error);
    }
  }

  /** An internal fault in one session ends that session. Never throws. */
  #failed(session: PeerSession | undefined, error: unknown): void {
    const { logger } = this.#options;
    logger.limited.error({ err: error }, 'a WebRTC session failed inside the server');
    try {
      session?.fail('internal error');
    } catch (again) {
      logger.error({ err: again }, 'a WebRTC session could not be ended');
    }
  }

  /** Answers a check, or processes the answer to a check of ours; returns its session. Never throws. */
  #stun(path: PeerPath, from: PeerAddress, datagram: Buffer): PeerSession | null {
    try {
      return stunTypeOf(datagram) === StunType.BINDING_SUCCESS ? this.#answered(path, datagram) : this.#checked(path, from, datagram);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#malformed += 1;
      return null;
    }
  }

  /** Throws ProtocolError. */
  #answered(path: PeerPath, datagram: Buffer): PeerSession | null {
    const message = parseStun(datagram);
    const session = this.awaited.get(transactionKey(message.transaction));
    const password = session?.remotePassword ?? null;
    if (session === undefined || password === null || !isStunAuthentic(message, password)) return null;
    return session.answered(path, message.transaction) ? session : null;
  }

  /** Throws ProtocolError. */
  #checked(path: PeerPath, from: PeerAddress, datagram: Buffer): PeerSession | null {
    const checked = checkRequest(
      datagram,
      from,
      (ufrag) => this.#sessions.get(ufrag),
      (fault, named) => {
        if (named === null) this.#stranger(path, `a connectivity check with ${fault}`);
        else named.refused(path, fault);
      },
    );
    if (checked === null) return null;
    const { response, session } = checked;
    if (path.kind === 'tcp') path.pipe.send(response);
    else if (!this.fanout.send(path.socket, path.to, response)) session?.unanswered(path);
    if (session === null) return null;
    session.reached(path, { ...checked, received: datagram.length, answered: response.length });
    return session;
  }

  #handshake(path: PeerPath & { readonly kind: 'udp' }, datagram: Buffer): void {
    const session = this.places.of(path.socket, path.to);
    if (session === undefined) this.#stranger(path, 'a handshake without connectivity check before it');
    else
      forEachGuarded(
        [session],
        (one) => one.handshake(datagram),
        (failed, error) => this.#failed(failed, error),
      );
  }

  #stranger(path: PeerPath, what: string): void {
    const { host } = path.kind === 'udp' ? path.to : path.pipe;
    this.strangers.note(host, placeOfPath(path), what, this.now());
  }

  #tick(): void {
    const now = this.now();
    forEachGuarded(
      this.#sessions.values(),
      (session) => session.tick(now),
      (session, error) => this.#failed(session, error),
    );
    const line = this.#report.next(now, () => this.counters());
    if (line !== null) this.#options.logger[line.level](line.fields, line.message);
  }
}

/** The address of a candidate as `formatCandidate` writes it. */
function addressOf(candidate: string): string {
  return candidate.split(' ')[4] ?? '';
}
