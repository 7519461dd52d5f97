/** Listens for transport streams on UDP (unicast and multicast) and TCP ports. */

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';
import type { StarterLimits } from '../../ingest/stream-starter.ts';
import { plainAddress } from '../../util/client-address.ts';
import type { Clock } from '../../util/clock.ts';
import type { ConnectionLimiter } from '../../util/connection-limiter.ts';
import { counted } from '../../util/counted.ts';
import { guarded } from '../../util/guarded.ts';
import { ownFamily } from '../../util/listen-addresses.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import type { RefusalLog } from '../../util/refusal-log.ts';
import { beginsHttp, beginsTls, spokeOther } from '../../util/wrong-protocol.ts';
import { DEFAULT_MPEGTS_TIMEOUTS, type MpegtsRoute, type MpegtsTimeouts, PortSource } from './port-source.ts';

/** Interval of the deadline checks. */
const SWEEP_INTERVAL_MS = 100;
/** Receive buffer of each socket, bytes: a second of a fast stream. The system may grant less. */
const RECEIVE_BUFFER = 4_194_304;

/** A multicast group, joined on every UDP port. */
export interface MulticastGroup {
  readonly group: string;
  /** The only accepted sender (source-specific multicast, RFC 4607); further senders have entries of their own. Absent: any. */
  readonly source?: string;
  /** Address of the interface; without one the system chooses. */
  readonly interface?: string;
}

/** The listener. With `multicast` the groups are joined on every UDP port. */
export interface MpegtsProviderOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Address to listen on. */
  readonly host: string;
  readonly protocol: 'udp' | 'tcp';
  /** 0 lets the system choose. */
  readonly ports: readonly number[];
  readonly multicast?: readonly MulticastGroup[];
  /** Finds out where the stream of a port goes; asked when a sender appears. */
  readonly route: (port: number) => MpegtsRoute | null;
  /** Limits TCP connections; absent: no limit. */
  readonly limiter?: ConnectionLimiter;
  /** Logs refused senders; absent: they are not logged. */
  readonly refusals?: RefusalLog;
  readonly timeouts?: Partial<MpegtsTimeouts>;
  readonly feedLimits?: Partial<StarterLimits>;
}

/** All ports of one address. A source is known by its port, and by its address where the stream map names one. */
export class MpegtsProvider {
  readonly #options: MpegtsProviderOptions;
  readonly #logger: Logger;
  readonly #timeouts: MpegtsTimeouts;
  /** By port. */
  readonly #sources = new Map<number, PortSource>();
  readonly #sockets: Socket[] = [];
  readonly #servers: net.Server[] = [];
  /** Open connections, with the time since which each has had no stream, monotonic ms. */
  readonly #connections = new Map<net.Socket, number>();
  #sweep: NodeJS.Timeout | null = null;

  constructor(options: MpegtsProviderOptions) {
    this.#options = options;
    this.#logger = options.logger;
    this.#timeouts = { ...DEFAULT_MPEGTS_TIMEOUTS, ...options.timeouts };
  }

  /** Sources, by port. */
  get sources(): ReadonlyMap<number, PortSource> {
    return this.#sources;
  }

  /** Listens on all ports. Rejects when one cannot be bound; call `stop` then. */
  async start(): Promise<void> {
    for (const port of this.#options.ports) {
      if (this.#options.protocol === 'tcp') await this.#listen(port);
      else await this.#bind(port);
    }
    const look = guarded(this.#logger, 'the watch over MPEG-TS ports', () => this.#checkDeadlines());
    this.#sweep = setInterval(() => setImmediate(look), SWEEP_INTERVAL_MS);
    const { host, protocol, multicast = [] } = this.#options;
    const ports = [...this.#sources.keys()];
    this.#logger.info(
      { host, protocol, ports, multicast },
      `MPEG-TS provider listening on ${counted(ports.length, `${protocol.toUpperCase()} port`)}`,
    );
  }

  /** Ends every publication and closes every port. Idempotent. */
  async stop(): Promise<void> {
    if (this.#sweep !== null) clearInterval(this.#sweep);
    this.#sweep = null;
    for (const source of this.#sources.values()) source.close({ code: 'shutdown', detail: 'the MPEG-TS provider stops' });
    this.#sources.clear();
    const closed = [...this.#sockets.splice(0), ...this.#servers.splice(0)].map(
      (socket) => new Promise<void>((done) => socket.close(() => done())),
    );
    for (const connection of this.#connections.keys()) connection.destroy();
    await Promise.all(closed);
  }

  async #bind(wanted: number): Promise<void> {
    const { host, multicast = [] } = this.#options;
    const socket = await this.#open(host, wanted);
    const { port } = socket.address();
    const source = this.#addSource(port);
    this.#receive(socket, source);
    const members = new Map<string, Socket>();
    for (const membership of multicast) {
      const { group } = membership;
      // A socket on all addresses has the group's port, too.
      const isThere = host === (net.isIPv6(group) ? '::' : '0.0.0.0');
      let member = isThere ? socket : members.get(group);
      if (member === undefined) {
        // A socket bound to the group receives its datagrams only.
        member = await this.#open(group, port);
        members.set(group, member);
        this.#receive(member, source);
      }
      join(member, membership);
    }
  }

  async #open(address: string, port: number): Promise<Socket> {
    const ipv6 = net.isIPv6(address);
    // IPv4 has a separate socket.
    const socket = createSocket({ type: ipv6 ? 'udp6' : 'udp4', ipv6Only: ipv6, recvBufferSize: RECEIVE_BUFFER });
    socket.bind({ address, port });
    this.#sockets.push(socket);
    try {
      await once(socket, 'listening');
    } catch (error) {
      this.#sockets.splice(this.#sockets.indexOf(socket), 1);
      socket.close();
      throw error;
    }
    return socket;
  }

  #receive(socket: Socket, source: PortSource): void {
    socket.on('error', (error) => this.#logger.error({ err: error }, 'MPEG-TS socket failed'));
    let port = -1;
    let address = '';
    let sender = '';
    socket.on('message', (data, from) => {
      // The text of an address is made once, not for every datagram.
      if (from.port !== port || from.address !== address) {
        port = from.port;
        address = from.address;
        sender = senderOf(address, port);
      }
      source.push(data, sender);
    });
  }

  async #listen(wanted: number): Promise<void> {
    const server = net.createServer((connection) => this.#accept(connection));
    const { host } = this.#options;
    server.listen({ ...ownFamily(host), port: wanted });
    await once(server, 'listening');
    this.#servers.push(server);
    server.on('error', (error) => this.#logger.error({ err: error }, 'MPEG-TS listener failed'));
    this.#addSource((server.address() as net.AddressInfo).port);
  }

  /** A port takes one connection at a time. */
  #accept(connection: net.Socket): void {
    const source = this.#sources.get(connection.localPort ?? 0);
    const { localPort: port, remoteAddress = '', remotePort = 0 } = connection;
    const sender = senderOf(remoteAddress, remotePort);
    if (source === undefined || [...this.#connections.keys()].some((other) => other.localPort === port)) {
      this.#options.refusals?.note('MPEG-TS connections refused: their port has one', { port, peer: sender });
      connection.destroy();
      return;
    }
    if (this.#options.limiter?.admit(connection) === false) {
      connection.destroy();
      return;
    }
    if (!source.admits(sender)) {
      connection.destroy();
      return;
    }
    this.#connections.set(connection, this.#options.clock.monotonic());
    connection.once('data', (data) => {
      if (this.#refuseForeign(connection, data)) return;
      source.push(data, sender);
      connection.on('data', (more) => source.push(more, sender));
    });
    connection.on('error', () => undefined);
    const { firstTrack } = this.#timeouts;
    connection.setTimeout(firstTrack, () => this.#cut(connection, `nothing came for ${firstTrack} ms`));
    connection.once('close', () => {
      this.#connections.delete(connection);
      source.left(sender);
    });
  }

  /** A request that begins with GET has the first byte of a transport stream. */
  #refuseForeign(connection: net.Socket, data: Buffer): boolean {
    const spoken = beginsHttp(data) ? 'HTTP' : beginsTls(data) ? 'TLS' : null;
    if (spoken === null) return false;
    const why = spokeOther(spoken, connection.localPort, 'MPEG-TS');
    this.#options.limiter?.fault(why, plainAddress(connection.remoteAddress ?? ''));
    connection.destroy();
    return true;
  }

  #cut(connection: net.Socket, detail: string): void {
    const { localPort: port = 0, remoteAddress = '', remotePort = 0 } = connection;
    this.#logger.limited.info({ port, peer: senderOf(remoteAddress, remotePort) }, `MPEG-TS connection closed: ${detail}`);
    this.#sources.get(port)?.close({ code: 'timeout', detail });
    connection.destroy();
  }

  #addSource(port: number): PortSource {
    const { route, clock, feedLimits, protocol, refusals } = this.#options;
    const source = new PortSource({
      port,
      scheme: protocol === 'tcp' ? 'TCP' : 'UDP',
      route,
      clock,
      logger: this.#logger.limited.child({ port }),
      timeouts: this.#timeouts,
      ...(feedLimits && { feedLimits }),
      ...(refusals && { refusals }),
    });
    this.#sources.set(port, source);
    return source;
  }

  #checkDeadlines(): void {
    for (const source of this.#sources.values()) source.checkDeadlines();
    const now = this.#options.clock.monotonic();
    const { firstTrack } = this.#timeouts;
    for (const [connection, since] of this.#connections) {
      // A port takes one connection, so a connection without a stream must not keep others out.
      if (this.#sources.get(connection.localPort ?? 0)?.started === true) this.#connections.set(connection, now);
      else if (now - since >= firstTrack) this.#cut(connection, `no usable stream in ${firstTrack} ms`);
    }
  }
}

/** How sources know a sender: `192.0.2.10:5000`, `[2001:db8::1]:5000`. */
function senderOf(address: string, port: number): string {
  return net.isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Throws an error that names the group. */
function join(socket: Socket, { group, source, interface: local }: MulticastGroup): void {
  try {
    if (source === undefined) socket.addMembership(group, local);
    else socket.addSourceSpecificMembership(source, group, local);
  } catch (error) {
    const from = source === undefined ? '' : ` from ${source}`;
    throw new Error(`cannot join group ${group}${from}: ${messageOf(error)}`, { cause: error });
  }
}
