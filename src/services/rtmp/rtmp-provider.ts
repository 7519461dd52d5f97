/** The RTMP listener: accepts publishers, limits their number and applies their deadlines. */
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { CertificateChoice } from '../../delivery/tls/certificate-choice.ts';
import type { Certificate } from '../../delivery/tls/certificate-index.ts';
import { SocketReader } from '../../native/tcp/socket-reader.ts';
import { type ConnectionGate, openGate } from '../../transport/proxy/connection-gate.ts';
import { hostPort } from '../../util/client-address.ts';
import { guarded } from '../../util/guarded.ts';
import { ownFamily } from '../../util/listen-addresses.ts';
import type { Logger } from '../../util/logger.ts';
import { NO_TURNS, type Turns } from '../../util/newcomer-turns.ts';
import { isPlain, spokePlain } from '../../util/wrong-protocol.ts';
import { RefusedPublishers } from './refused-publishers.ts';
import { RtmpConnection } from './rtmp-connection.ts';
import {
  DEFAULT_RTMP_LIMITS,
  DEFAULT_RTMP_TIMEOUTS,
  type RtmpLimits,
  type RtmpProviderOptions,
  type RtmpTimeouts,
} from './rtmp-options.ts';

/** Maximum time of deadline checks per turn, ms. */
const STRETCH_MS = 2;

/** One listener, plain or TLS. A server with both has two providers on one gate. */
export class RtmpProvider {
  /** Connections accepted since the start. */
  accepted = 0;
  /** Connections closed, at once or with a reason, because too many were open, of all or of their address. */
  dropped = 0;
  readonly #options: RtmpProviderOptions;
  readonly #logger: Logger;
  readonly #entry: ConnectionGate;
  readonly #turns: Turns;
  readonly #limits: RtmpLimits;
  readonly #refused: RefusedPublishers;
  readonly #timeouts: RtmpTimeouts;
  readonly #reader = new SocketReader();
  readonly #connections = new Set<RtmpConnection>();
  readonly #certificates = new CertificateChoice();
  /** Every accepted socket, including those in the TLS handshake. */
  readonly #sockets = new Set<net.Socket>();
  /** Accept times of connections that use TLS, until they end. */
  readonly #acceptedAt = new Map<string, number>();
  #lastSession = 0;
  #server: net.Server | null = null;
  /** Performs the handshake with clients of an RTMPS listener. */
  #secure: tls.Server | null = null;
  /** Reads the sockets whose streams can wait, and checks deadlines. */
  #sweep: NodeJS.Timeout | null = null;
  #sweepInterval = 0;
  readonly #deadlines: () => void;
  /** Connections still to be checked in this round; null between two rounds. */
  #due: SetIterator<RtmpConnection> | null = null;

  constructor(options: RtmpProviderOptions) {
    this.#options = options;
    this.#logger = options.logger;
    this.#deadlines = guarded(options.logger, 'the watch over RTMP connections', () => this.#checkDeadlines());
    this.#entry = options.entry ?? openGate('RTMP connections');
    this.#turns = options.turns ?? NO_TURNS;
    this.#limits = { ...DEFAULT_RTMP_LIMITS, ...options.limits };
    this.#timeouts = { ...DEFAULT_RTMP_TIMEOUTS, ...options.timeouts };
    this.#refused = new RefusedPublishers({ limits: this.#limits, timeouts: this.#timeouts, clock: options.clock });
  }

  /** Port listened on; 0 when not started. */
  get port(): number {
    const address = this.#server?.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Connections open now. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Listens. Rejects when the address cannot be bound. */
  async start(): Promise<void> {
    if (this.#server !== null) throw new Error('the RTMP provider is already started');
    const server = this.#createServer();
    this.#server = server;
    try {
      server.listen({ ...ownFamily(this.#options.host), port: this.#options.port });
      await once(server, 'listening');
    } catch (error) {
      this.#server = null;
      throw error;
    }
    server.on('error', (error) => this.#logger.error({ err: error }, 'RTMP listener failed'));
    this.#logger.info({ host: this.#options.host, port: this.port, scheme: this.#scheme }, 'RTMP provider listening');
  }

  /** Replaces all certificates of an RTMPS listener; open connections keep theirs. Throws for bad PEM. */
  setCertificates(certificates: readonly Certificate[]): void {
    if (this.#secure !== null) this.#certificates.replace(certificates, this.#secure);
  }

  /** A new client may need any stream: resting sockets are read now. */
  readNow(): void {
    this.#reader.readNow();
  }

  /** Stops listening and closes every connection. Idempotent. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    const closed = once(server, 'close');
    server.close();
    // A connection has a socket of its own: those of the server are empty, except during TLS handshakes.
    for (const connection of this.#connections) connection.cut({ code: 'shutdown', detail: 'the RTMP provider stops' });
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    this.#stopSweeping();
    this.#logger.info({}, 'RTMP provider stopped');
  }

  get #scheme(): 'rtmp' | 'rtmps' {
    return this.#options.tls === undefined ? 'rtmp' : 'rtmps';
  }

  #createServer(): net.Server {
    const { tls: credentials } = this.#options;
    this.#secure = credentials === undefined ? null : this.#createTlsServer(credentials);
    const server = net.createServer({ pauseOnConnect: this.#secure === null }, (socket) => this.#enter(socket));
    server.maxConnections = this.#limits.connections;
    server.on('drop', () => {
      this.dropped += 1;
      this.#entry.overflow(this.#limits.connections);
    });
    return server;
  }

  /** Admits or refuses a connection. */
  #enter(socket: net.Socket): void {
    const secure = this.#secure;
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    const begin = (): void => {
      this.accepted += 1;
      if (secure === null) this.#await(socket, refuse);
      // The TLS server never listens: connections are counted before the handshake.
      else this.#secureFrom(socket, secure);
    };
    const refuse = (): void => {
      this.dropped += 1;
      if (secure === null) this.#refused.answer(socket);
      else socket.destroy();
    };
    this.#entry.open(socket, begin, refuse);
  }

  #secureFrom(socket: net.Socket, secure: tls.Server): void {
    const key = keyOf(socket);
    const acceptedAt = this.#options.clock.monotonic();
    this.#acceptedAt.set(key, acceptedAt);
    socket.once('close', () => {
      // A peer may reuse its port before we learn of the end.
      if (this.#acceptedAt.get(key) === acceptedAt) this.#acceptedAt.delete(key);
    });
    secure.emit('connection', socket);
  }

  #createTlsServer(certificates: readonly Certificate[]): tls.Server {
    const options = { SNICallback: this.#certificates.answer, handshakeTimeout: this.#timeouts.handshake };
    const server = tls.createServer(options, (socket) => this.#open(socket));
    this.#certificates.replace(certificates, server);
    server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      const { address, port } = this.#entry.clientOf(socket);
      if (isPlain(error)) this.#entry.fault(socket, spokePlain(socket.localPort, 'RTMP'));
      this.#logger.limited.info(
        { peer: hostPort(address, port), code: 'peer-error', detail: error.code ?? error.message },
        'RTMPS connection closed in the TLS handshake',
      );
      socket.destroy();
    });
    return server;
  }

  /** Opens a connection when it is its turn. Until then it is paused: its bytes, and its end, stay in the kernel. */
  #await(socket: net.Socket, refuse: () => void): void {
    const { address: client } = this.#entry.clientOf(socket);
    const enter = (): void => {
      if (!socket.destroyed) this.#open(socket);
    };
    this.#turns.take({ client, enter, failed: () => socket.destroy(), refused: refuse });
  }

  #open(socket: net.Socket): void {
    try {
      this.#accept(socket);
    } catch (error) {
      this.#logger.limited.error({ err: error }, 'an RTMP connection could not be accepted');
      socket.destroy();
    }
  }

  #accept(socket: net.Socket): void {
    this.#lastSession += 1;
    // A publisher may be back: the data and the end of its last connection are read before it asks for its stream.
    if (this.#options.onArrival === undefined) this.readNow();
    else this.#options.onArrival();
    this.#keepSweeping();
    const connection = new RtmpConnection({
      id: this.#lastSession,
      socket,
      client: this.#entry.clientOf(socket),
      reader: this.#reader,
      scheme: this.#scheme,
      gate: this.#options.gate,
      access: this.#options.access,
      turns: this.#turns,
      logger: this.#logger.limited,
      clock: this.#options.clock,
      acceptedAt: this.#acceptedAt.get(keyOf(socket)),
      limits: this.#limits,
      timeouts: this.#timeouts,
      enhanced: this.#options.enhanced !== false,
      onForeign: (why) => this.#entry.fault(socket, why),
      onClosed: (closed) => this.#forget(closed),
    });
    this.#connections.add(connection);
  }

  #forget(connection: RtmpConnection): void {
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#stopSweeping();
  }

  /** At the reader's present interval. */
  #keepSweeping(): void {
    const interval = this.#reader.sweepInterval;
    if (this.#sweep !== null && interval === this.#sweepInterval) return;
    this.#stopSweeping();
    this.#sweepInterval = interval;
    this.#sweep = setInterval(
      guarded(this.#logger, 'the watch over RTMP connections', () => this.#sweepConnections()),
      interval,
    );
  }

  #stopSweeping(): void {
    if (this.#sweep !== null) clearInterval(this.#sweep);
    this.#sweep = null;
  }

  #sweepConnections(): void {
    // Pending bytes in the sockets are read before any deadline is judged, also after a stall of the event loop.
    this.#reader.sweep(() => setImmediate(this.#deadlines));
    if (this.#connections.size > 0) this.#keepSweeping();
  }

  /** A connection that fails ends by itself. Streams begin here, so all checks may take too long for one turn of the event loop. */
  #checkDeadlines(): void {
    const from = performance.now();
    this.#due ??= this.#connections.values();
    for (const connection of this.#due) {
      connection.checkDeadlines();
      if (performance.now() - from < STRETCH_MS) continue;
      setImmediate(this.#deadlines);
      return;
    }
    this.#due = null;
  }
}

/** The remote end of a connection, the same for the TLS socket on top of it. */
function keyOf({ remoteAddress = '', remotePort = 0 }: net.Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
