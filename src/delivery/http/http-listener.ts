/** A port for HTTP/1.x without TLS. */
import { createServer, type Server, type Socket } from 'node:net';
import { type ConnectionGate, openGate } from '../../transport/proxy/connection-gate.ts';
import { closeShared, type ListenAddress, listenShared } from '../../transport/tcp/shared-port.ts';
import { spokeTls } from '../../util/wrong-protocol.ts';
import { type HttpCounters, newHttpCounters } from '../http-counters.ts';
import type { HttpLimits } from '../http-limits.ts';
import type { AnswerLinks } from './answer-link.ts';
import type { RequestHandler } from './answer-sink.ts';
import { DirectSender } from './direct-sender.ts';
import { HttpConnection, type HttpConnectionContext } from './http-connection.ts';
import { PlainTransport } from './plain-transport.ts';
import { RefusedConnections } from './refused-connections.ts';
import type { DateLine } from './status-line.ts';

/** `counters` may be shared with other listeners. */
export interface HttpListenerOptions {
  readonly handler: RequestHandler;
  readonly limits: HttpLimits;
  readonly date: DateLine;
  /** Complete header lines of answers made without the handler, e.g. `Server: …`. */
  readonly commonHeaders: string;
  readonly counters?: HttpCounters;
  /** Sends answers; null: only through Node.js. Absent: the default of this machine. */
  readonly sender?: DirectSender | null;
  /** The store of kept answers; absent: none. */
  readonly answers?: AnswerLinks | null;
  /** Limits connections and finds clients behind proxies; absent: no limits and no proxies. */
  readonly gate?: ConnectionGate;
  /** The listening socket has failed. */
  readonly onError?: (error: Error) => void;
  /** Called for every new connection. */
  readonly onOpened?: (connection: HttpConnection) => void;
  /** Called for every ended connection. */
  readonly onClosed?: (connection: HttpConnection, reason: string) => void;
}

/**
 * Owns the port and its connections: the caller of `listen` calls `close`. The handler is called for each request, in the same turn as it
 * arrived.
 */
export class HttpListener {
  readonly counters: HttpCounters;
  readonly #server: Server;
  readonly #connections = new Set<HttpConnection>();
  readonly #context: HttpConnectionContext;
  readonly #refused: RefusedConnections;
  readonly #onError: (error: Error) => void;
  #sweeper: NodeJS.Timeout | null = null;

  constructor(options: HttpListenerOptions) {
    const { limits, gate = openGate('HTTP connections') } = options;
    this.#onError = options.onError ?? (() => undefined);
    this.#refused = new RefusedConnections(options.commonHeaders);
    this.counters = options.counters ?? newHttpCounters();
    this.#context = {
      handler: options.handler,
      limits,
      date: options.date,
      counters: this.counters,
      commonHeaders: options.commonHeaders,
      now: () => performance.now(),
      spokeTls: ({ remoteAddress, localPort }) => gate.faultOf(remoteAddress, spokeTls(localPort)),
      closed: (connection, reason) => {
        this.#connections.delete(connection);
        options.onClosed?.(connection, reason);
      },
    };
    const sender = options.sender === undefined ? DirectSender.load() : options.sender;
    // Our side stays open after the peer's FIN: the answer to an earlier request must still be sent.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket: Socket) => {
      gate.open(
        socket,
        () => {
          const connection = new HttpConnection(new PlainTransport(socket, sender, options.answers), this.#context, gate.clientOf(socket));
          this.#connections.add(connection);
          this.#sweeper ??= setInterval(() => this.#sweep(), limits.sweepInterval);
          options.onOpened?.(connection);
          // It is paused if a proxy's header was read from it.
          if (socket.isPaused()) socket.resume();
        },
        () => {
          this.counters.refused += 1;
          this.#refused.answer(socket);
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
    return this.#connections.size;
  }

  /** Opens the port and returns its number. Several threads may open the same one: the kernel spreads connections. */
  async listen(address: ListenAddress): Promise<number> {
    const port = await listenShared(this.#server, address);
    this.#server.on('error', (error) => this.#onError(error));
    return port;
  }

  /** Stops listening, waits up to `grace` ms for answers in progress, then drops the remaining ones. Idempotent. */
  async close(grace: number): Promise<void> {
    if (!this.#server.listening) return;
    const closed = closeShared(this.#server, grace, () => {
      for (const connection of this.#connections) connection.destroy('the server stopped');
      this.#refused.close();
    });
    for (const connection of this.#connections) connection.close('the server stops');
    await closed;
    this.#stopSweeping();
  }

  /** Checks all connections; without any there is no timer, which would wake the thread for nothing. */
  #sweep(): void {
    const now = this.#context.now();
    for (const connection of this.#connections) connection.sweep(now);
    if (this.#connections.size === 0) this.#stopSweeping();
  }

  #stopSweeping(): void {
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    this.#sweeper = null;
  }
}
