/** A port for HTTP/2 and HTTP/1.1 over TLS without Node's streams. */
import { createServer, type Server, type Socket } from 'node:net';
import { loadAddon, type NativeAddon } from '../../../native/addon.ts';
import { type ConnectionGate, openGate } from '../../../transport/proxy/connection-gate.ts';
import { closeShared, type ListenAddress, listenShared } from '../../../transport/tcp/shared-port.ts';
import { isPlainRequest, spokePlain } from '../../../util/wrong-protocol.ts';
import type { ClientEnd } from '../../../wire/proxy/proxy-header.ts';
import { type HttpCounters, newHttpCounters } from '../../http-counters.ts';
import type { Certificate } from '../../tls/certificate-index.ts';
import { HttpConnection, type HttpConnectionContext } from '../http-connection.ts';
import type { SecureListenerOptions } from '../secure-listener.ts';
import type { DateLine } from '../status-line.ts';
import { Http2Connection, type Http2ConnectionContext } from './http2-connection.ts';
import { SecureTransport } from './secure-transport.ts';
import { TlsContexts } from './tls-contexts.ts';
import { TlsLink, type TlsUser } from './tls-link.ts';

/** The handler takes over connections of upgrade requests. */
export interface DirectSecureListenerOptions extends Omit<SecureListenerOptions, 'onUpgrade'> {
  readonly date: DateLine;
}

type Connection = HttpConnection | Http2Connection;

/** Owns the port and its connections: the caller of `listen` calls `close`. Without `setCertificates` no handshake succeeds. */
export class DirectSecureListener {
  readonly counters: HttpCounters;
  readonly #addon: NativeAddon;
  readonly #options: DirectSecureListenerOptions;
  readonly #gate: ConnectionGate;
  readonly #server: Server;
  readonly #contexts: TlsContexts;
  readonly #context: HttpConnectionContext;
  readonly #http2Context: Http2ConnectionContext;
  /** Connections during the handshake, with its start time. */
  readonly #shaking = new Map<TlsLink, number>();
  readonly #connections = new Set<Connection>();
  #sweeper: NodeJS.Timeout | null = null;

  /** Null if the addon does not support it. */
  static create(options: DirectSecureListenerOptions): DirectSecureListener | null {
    const { addon } = loadAddon();
    if (addon === null) return null;
    let contexts: TlsContexts;
    try {
      contexts = new TlsContexts(addon, options.http2);
    } catch {
      return null;
    }
    return new DirectSecureListener(addon, contexts, options);
  }

  private constructor(addon: NativeAddon, contexts: TlsContexts, options: DirectSecureListenerOptions) {
    const { limits, gate = openGate('HTTPS connections') } = options;
    this.#addon = addon;
    this.#contexts = contexts;
    this.#options = options;
    this.#gate = gate;
    this.counters = options.counters ?? newHttpCounters();
    const common = {
      ...{ handler: options.handler, limits, date: options.date, counters: this.counters, commonHeaders: options.commonHeaders },
      now: () => performance.now(),
    };
    this.#context = { ...common, spokeTls: () => {}, closed: (connection, reason) => this.#onClosed(connection, reason) };
    this.#http2Context = { ...common, closed: (connection, reason) => this.#onClosed(connection, reason) };
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      gate.open(
        socket,
        () => this.#begin(socket),
        () => {
          this.counters.refused += 1;
          socket.destroy();
        },
      );
    });
    this.#server.maxConnections = limits.connections;
    this.#server.on('drop', () => {
      this.counters.refused += 1;
      gate.overflow(limits.connections);
    });
  }

  get connections(): number {
    return this.#shaking.size + this.#connections.size;
  }

  /** Replaces all certificates. Open connections keep theirs; the first is for clients without SNI. Throws for invalid PEM. */
  setCertificates(certificates: readonly Certificate[]): void {
    this.#contexts.replace(certificates);
  }

  /** Opens the port and returns its number. Several threads may open the same one: the kernel spreads connections. */
  async listen(address: ListenAddress): Promise<number> {
    const port = await listenShared(this.#server, address);
    this.#server.on('error', (error) => this.#options.onError?.(error));
    return port;
  }

  /** Stops listening, waits up to `grace` ms for answers in progress, then drops the remaining ones. Idempotent. */
  async close(grace: number): Promise<void> {
    if (!this.#server.listening) return;
    const closed = closeShared(this.#server, grace, () => {
      for (const connection of this.#connections) connection.destroy('the server stopped');
    });
    for (const link of this.#shaking.keys()) link.destroy();
    for (const connection of this.#connections) connection.close('the server stops');
    await closed;
    this.#stopSweeping();
  }

  #begin(socket: Socket): void {
    const { limits, onOpened } = this.#options;
    const client = this.#gate.clientOf(socket);
    const link = TlsLink.open(socket, {
      addon: this.#addon,
      context: this.#contexts.first,
      choose: this.#contexts.choose,
      ...{ headerLines: limits.headerLines, headerBytes: limits.headerBytes },
      shaken: (shaken, http2) => this.#shaken(shaken, http2, client),
      refused: (_link, reason) => this.#refused(socket, reason),
    });
    if (link === null) {
      socket.destroy();
      return;
    }
    this.#shaking.set(link, performance.now());
    socket.once('close', () => this.#shaking.delete(link));
    this.#sweeper ??= setInterval(() => this.#sweep(), limits.sweepInterval);
    onOpened?.(client.address);
    if (socket.isPaused()) socket.resume();
  }

  #shaken(link: TlsLink, http2: boolean, client: ClientEnd): TlsUser {
    this.#shaking.delete(link);
    if (http2) {
      const connection = new Http2Connection(link, this.#http2Context, client);
      this.#connections.add(connection);
      return connection;
    }
    const transport = new SecureTransport(link);
    this.#connections.add(new HttpConnection(transport, this.#context, client));
    return transport;
  }

  #refused(socket: Socket, reason: string): void {
    this.counters.faults += 1;
    if (isPlainRequest(reason)) this.#gate.fault(socket, spokePlain(socket.localPort));
  }

  #onClosed(connection: Connection, reason: string): void {
    this.#connections.delete(connection);
    this.#options.onClosed?.(connection.remoteAddress, reason);
  }

  /** Checks all connections; without any there is no timer, which would wake the thread for nothing. */
  #sweep(): void {
    const now = performance.now();
    const { headerTime } = this.#options.limits;
    for (const [link, since] of this.#shaking) {
      if (now - since <= headerTime) continue;
      this.counters.timeouts += 1;
      link.destroy();
    }
    for (const connection of this.#connections) connection.sweep(now);
    if (this.connections === 0) this.#stopSweeping();
  }

  #stopSweeping(): void {
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    this.#sweeper = null;
  }
}
