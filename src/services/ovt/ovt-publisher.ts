/** Serves outbound streams to edges: other servers that pull them over OVT. */
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { PublisherKind } from '../../core/kinds.ts';
import type { PublishableStream, Publisher } from '../../core/publishing.ts';
import { addressOf, streamKey } from '../../core/stream-address.ts';
import type { StreamFinder } from '../../core/stream-demand.ts';
import { UNKNOWN_STREAM } from '../../core/unknown-stream.ts';
import { CertificateChoice } from '../../delivery/tls/certificate-choice.ts';
import type { Certificate } from '../../delivery/tls/certificate-index.ts';
import { plainAddress } from '../../util/client-address.ts';
import type { Clock } from '../../util/clock.ts';
import { type ConnectionLimiter, unlimitedConnections } from '../../util/connection-limiter.ts';
import { forEachGuarded } from '../../util/guarded.ts';
import { ownFamily } from '../../util/listen-addresses.ts';
import type { Logger } from '../../util/logger.ts';
import type { TimeoutScale } from '../../util/timeout-scale.ts';
import { isPlain, isPlainRequest, spokeOther, spokePlain } from '../../util/wrong-protocol.ts';
import { OvtCommand } from '../../wire/ovt/message.ts';
import { OvtConnection } from './ovt-connection.ts';
import { type EdgeDirectory, type EdgesSeen, OvtStream } from './ovt-stream.ts';
import { LOOP_REFUSAL, RelayPaths } from './relay-paths.ts';

/** Default limit of edges on one port. */
export const MAX_EDGES = 1000;
const DEFAULT_START_WAIT_MS = 3000;
const SWEEP_MS = 1000;
/** Time for a TLS handshake. */
const HANDSHAKE_MS = 10_000;
/** Time for connections to close at the end; each has half a second for its last bytes. */
const CUT_MS = 1000;

/** An address to listen on, and the search for the requested streams. */
export interface OvtListenOptions {
  readonly host: string;
  readonly port: number;
  /** Name of the virtual host that serves a host name; null if there is none. */
  readonly virtualHostFor: (host: string) => string | null;
  readonly hasApplication: (vhost: string, app: string) => boolean;
  /** Limit of edges on one port. */
  readonly maxConnections?: number;
  /** Limits connections; absent: no limits. */
  readonly limiter?: ConnectionLimiter;
  /** Maximum time for an existing stream to start before an edge is asked to retry, ms. */
  readonly startWait?: number;
  readonly timeoutScale?: TimeoutScale;
  /** Connections use TLS, once `setCertificates` has been called. Default: false. */
  readonly tls?: boolean;
}

/** Reports a client that speaks another protocol. */
type Fault = (socket: net.Socket, why: string) => void;

/** The TLS server of a listener. It does not listen: the plain server counts connections before the handshake. */
interface SecurePart {
  readonly server: tls.Server;
  readonly choice: CertificateChoice;
}

interface Listener {
  readonly secure: SecurePart | null;
  /** All admitted sockets. */
  readonly sockets: Set<net.Socket>;
  readonly server: net.Server;
  readonly sweep: NodeJS.Timeout;
  readonly connections: Set<OvtConnection>;
}

/** Registered in the core, which closes the streams. The server calls `listen` for each address, and `stop`. */
export class OvtPublisher implements Publisher {
  readonly kind = PublisherKind.OVT;
  /** Connections refused by a limit. */
  refused = 0;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #finder: StreamFinder | null;
  readonly #directory: EdgeDirectory | null;
  readonly #paths: RelayPaths;
  readonly #passesMarks: boolean;
  readonly #key: string | null;
  /** By virtual host, application and stream. */
  readonly #streams = new Map<string, OvtStream>();
  readonly #listeners: Listener[] = [];
  readonly #edges: EdgesSeen = { numberAlike: false };
  #lastSession = 0;

  /** `finder` searches missing streams; absent: no search. `directory` gets the available streams. */
  constructor(options: {
    readonly logger: Logger;
    readonly clock: Clock;
    readonly finder?: StreamFinder;
    readonly directory?: EdgeDirectory;
    /** Default: for a server that pulls nothing. */
    readonly paths?: RelayPaths;
    /** Sends marks of segments to edges, which needs memory from the first such edge on; default: no. */
    readonly passesMarks?: boolean;
    /** The key that edges must prove; default: none. */
    readonly key?: string | undefined;
  }) {
    this.#logger = options.logger;
    this.#clock = options.clock;
    this.#finder = options.finder ?? null;
    this.#directory = options.directory ?? null;
    this.#paths = options.paths ?? new RelayPaths();
    this.#passesMarks = options.passesMarks ?? false;
    this.#key = options.key ?? null;
  }

  /** Listening ports. */
  get ports(): readonly number[] {
    return this.#listeners.map(({ server }) => (server.address() as net.AddressInfo).port);
  }

  /** Connected edges. */
  get connections(): number {
    return this.#listeners.reduce((sum, { connections }) => sum + connections.size, 0);
  }

  /** Edges get all tracks and the playlists of other publishers. */
  defaultPlaylist(): null {
    return null;
  }

  attach(stream: PublishableStream): OvtStream {
    const key = streamKey(addressOf(stream));
    const served: OvtStream = new OvtStream({
      stream,
      paths: this.#paths,
      marks: this.#passesMarks,
      edges: this.#edges,
      directory: this.#directory,
      onClosed: () => {
        if (this.#streams.get(key) === served) this.#streams.delete(key);
      },
    });
    this.#streams.set(key, served);
    return served;
  }

  /** Listens on one address. Rejects if it cannot be bound. */
  async listen(options: OvtListenOptions): Promise<void> {
    const { host, port, maxConnections = MAX_EDGES, limiter = unlimitedConnections('OVT edges') } = options;
    const connections = new Set<OvtConnection>();
    const sockets = new Set<net.Socket>();
    const fault = (socket: net.Socket, why: string): void => limiter.fault(why, plainAddress(socket.remoteAddress ?? ''));
    const open = (socket: net.Socket): void => void connections.add(this.#open(socket, options, connections, fault));
    const secure = options.tls === true ? this.#createSecurePart(open, HANDSHAKE_MS * (options.timeoutScale ?? 1), fault) : null;
    const server = net.createServer((socket) => {
      if (!limiter.admit(socket)) {
        this.refused += 1;
        socket.destroy();
        return;
      }
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
      if (secure === null) open(socket);
      else secure.server.emit('connection', socket);
    });
    server.maxConnections = maxConnections;
    server.on('drop', () => {
      this.refused += 1;
      limiter.overflow(maxConnections);
    });
    server.listen({ ...ownFamily(host), port });
    await once(server, 'listening');
    server.on('error', (error) => this.#logger.error({ err: error }, 'OVT listener failed'));
    const sweep = setInterval(
      () => {
        const failed = (connection: OvtConnection, error: unknown): void => {
          this.#logger.error({ err: error }, 'OVT connection failed inside the server');
          connection.cut('internal error');
        };
        forEachGuarded(connections, (connection) => connection.checkDeadline(), failed);
      },
      SWEEP_MS * (options.timeoutScale ?? 1),
    );
    this.#listeners.push({ server, secure, sockets, sweep, connections });
    const facts = { host, port: (server.address() as net.AddressInfo).port, scheme: secure === null ? 'ovt' : 'ovts' };
    this.#logger.info(facts, 'OVT publisher listening');
  }

  /** Replaces the certificates of all TLS listeners; open connections keep theirs. Throws for invalid PEM. */
  setCertificates(certificates: readonly Certificate[]): void {
    for (const { secure } of this.#listeners) secure?.choice.replace(certificates, secure.server);
  }

  /** Stops listening and informs edges. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all(
      this.#listeners.splice(0).map(async ({ server, sockets, sweep, connections }) => {
        clearInterval(sweep);
        const closed = once(server, 'close');
        server.close();
        for (const connection of [...connections]) connection.close('the server stops');
        // Sockets in a TLS handshake have no connection yet.
        const cut = setTimeout(() => sockets.forEach((socket) => void socket.destroy()), CUT_MS);
        await closed;
        clearTimeout(cut);
      }),
    );
  }

  #createSecurePart(open: (socket: net.Socket) => void, handshakeTimeout: number, fault: Fault): SecurePart {
    const choice = new CertificateChoice();
    const server = tls.createServer({ SNICallback: choice.answer, handshakeTimeout }, open);
    server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      const { localPort } = socket;
      if (isPlainRequest(error)) fault(socket, spokeOther('HTTP', localPort, 'OVT'));
      else if (isPlain(error)) fault(socket, spokePlain(localPort, 'OVT'));
      const facts = { peer: `${socket.remoteAddress}:${socket.remotePort}`, code: 'peer-error', detail: error.code ?? error.message };
      this.#logger.limited.info(facts, 'OVT connection closed in the TLS handshake');
      socket.destroy();
    });
    return { server, choice };
  }

  #open(
    socket: net.Socket,
    { virtualHostFor, hasApplication, startWait = DEFAULT_START_WAIT_MS, timeoutScale }: OvtListenOptions,
    connections: Set<OvtConnection>,
    fault: Fault,
  ): OvtConnection {
    this.#lastSession += 1;
    return new OvtConnection({
      socket,
      clock: this.#clock,
      startWait,
      key: this.#key,
      logger: this.#logger.limited.child({ session: this.#lastSession, peer: `${socket.remoteAddress}:${socket.remotePort}` }),
      find: ({ host, app, stream }) => {
        const vhost = virtualHostFor(host);
        return vhost === null ? null : (this.#streams.get(streamKey({ vhost, app, stream })) ?? null);
      },
      fetch: ({ host, app, stream }, via) => {
        const vhost = virtualHostFor(host);
        const client = plainAddress(socket.remoteAddress ?? '');
        return vhost === null ? null : (this.#finder?.find({ vhost, app, stream, query: '', client, via }) ?? null);
      },
      loopOf: ({ host, app, stream }, askers) => this.#paths.loopOf({ vhost: virtualHostFor(host) ?? '', app, stream }, askers),
      absence: ({ host, app, stream }, command) => {
        const vhost = virtualHostFor(host);
        if (vhost !== null && command === OvtCommand.DESCRIBE && this.#finder?.isUnknown?.({ vhost, app, stream }) === true) {
          return `There is no such stream here, and ${UNKNOWN_STREAM} (#${vhost}#${app}/${stream})`;
        }
        // In the words of the reference server, which edges log.
        const name = `#${vhost ?? host}#${app}`;
        if (vhost !== null && this.#paths.takeLoop({ vhost, app, stream })) return `${LOOP_REFUSAL} (${name}/${stream})`;
        const isThere = command !== OvtCommand.PLAY || (vhost !== null && hasApplication(vhost, app));
        return isThere ? `There is no such stream (${name}/${stream})` : `There is no such app (${name})`;
      },
      onForeign: (why) => fault(socket, why),
      onClosed: (connection) => connections.delete(connection),
      timeoutScale,
    });
  }
}
