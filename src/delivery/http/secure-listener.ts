/** A port for HTTP/2 and HTTP/1.1 over TLS, with certificates chosen by server name (SNI) and replaceable at runtime. */
import type { IncomingMessage } from 'node:http';
import type { Http2SecureServer, Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionGate, openGate } from '../../transport/proxy/connection-gate.ts';
import { ConnectionWatch } from '../../transport/tcp/connection-watch.ts';
import { closeShared, type ListenAddress, listenShared } from '../../transport/tcp/shared-port.ts';
import { endAndCut } from '../../util/end-and-cut.ts';
import { protocolChoice } from '../../util/node-http.ts';
import { type ProxyHeaders, proxyHeaders } from '../../util/trusted-proxies.ts';
import { isPlainRequest, spokePlain } from '../../util/wrong-protocol.ts';
import type { ClientEnd } from '../../wire/proxy/proxy-header.ts';
import { type HttpCounters, newHttpCounters } from '../http-counters.ts';
import type { HttpLimits } from '../http-limits.ts';
import { CertificateChoice } from '../tls/certificate-choice.ts';
import type { Certificate } from '../tls/certificate-index.ts';
import type { RequestHandler } from './answer-sink.ts';
import { NodeSink, type NodeSinkContext } from './node-sink.ts';

/** The origin of an upgrade request. */
export interface UpgradeEnds extends ProxyHeaders {
  readonly remote: ClientEnd;
  readonly localPort: number;
}

/** `counters` may be shared with other listeners. The callbacks are called for each connection, not for each request. */
export interface SecureListenerOptions {
  readonly handler: RequestHandler;
  readonly limits: HttpLimits;
  readonly commonHeaders: string;
  readonly counters?: HttpCounters;
  /** False: HTTP/1.1 only. */
  readonly http2: boolean;
  /** Limits connections and finds clients behind proxies; absent: no limits and no proxies. */
  readonly gate?: ConnectionGate;
  /** The listening socket has failed. */
  readonly onError?: (error: Error) => void;
  readonly onOpened?: (remoteAddress: string) => void;
  /** `reason` is for the log. */
  readonly onClosed?: (remoteAddress: string, reason: string) => void;
  /** Handles WebSocket upgrades (HTTP/1.1); absent: they are refused. `bytes` start with the request. */
  readonly onUpgrade?: (socket: Duplex, bytes: Buffer, ends: UpgradeEnds) => void;
}

/** Handshake and first request may each take the time of a request header. */
const FIRST_TIMES = 2;
/** A whole request; its body is at most a session description. */
const REQUEST_TIMES = 3;
const BROKEN = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';
const REFUSED_UPGRADE = 'HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

/** Owns the port and its connections: the caller of `listen` calls `close`. Without `setCertificates` no handshake succeeds. */
export class SecureListener {
  readonly counters: HttpCounters;
  readonly #server: Http2SecureServer;
  readonly #limits: HttpLimits;
  readonly #context: NodeSinkContext;
  readonly #sockets = new Set<Socket>();
  readonly #watch: ConnectionWatch;
  readonly #certificates = new CertificateChoice();
  readonly #onError: (error: Error) => void;
  #sweeper: NodeJS.Timeout | null = null;

  constructor(options: SecureListenerOptions) {
    const { limits, handler, gate = openGate('HTTPS connections') } = options;
    this.#onError = options.onError ?? (() => undefined);
    const counters = options.counters ?? newHttpCounters();
    this.counters = counters;
    this.#limits = limits;
    this.#context = { counters, commonHeaders: options.commonHeaders, open: new Set(), gate };
    // Loaded with the first such port: most servers have none, and loading takes a tenth of a thread's start.
    this.#server = process.getBuiltinModule('node:http2').createSecureServer({
      allowHTTP1: true,
      ...protocolChoice(options.http2),
      SNICallback: this.#certificates.answer,
      handshakeTimeout: limits.headerTime,
      maxHeaderListPairs: limits.headerLines,
      settings: { maxConcurrentStreams: 128, maxHeaderListSize: limits.headerBytes },
    });
    this.#server.on('request', (request: Http2ServerRequest, response: Http2ServerResponse) => {
      counters.requests += 1;
      this.#watch.began(request.socket, response);
      new NodeSink(request, response, this.#context).serve(handler);
    });
    this.#server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      counters.requests += 1;
      if (options.onUpgrade === undefined || request.headers.upgrade?.toLowerCase() !== 'websocket')
        endAndCut(socket, REFUSED_UPGRADE, limits.lingerTime);
      else {
        const { localPort = 0 } = request.socket;
        const joined = (name: string): string | undefined => [request.headers[name] ?? []].flat().join(', ') || undefined;
        const ends = { remote: gate.clientOf(request.socket), localPort, ...proxyHeaders(joined) };
        this.#watch.release(request.socket);
        options.onUpgrade(socket, Buffer.concat([requestBytes(request), head]), ends);
      }
    });
    // Node starts the handshake for every connection; a refused one must not get that far.
    const begin = this.#server.listeners('connection') as ((socket: Socket) => void)[];
    this.#server.removeAllListeners('connection');
    this.#server.on('connection', (socket: Socket) => {
      gate.open(
        socket,
        () => {
          this.#track(socket, gate.clientOf(socket).address, options);
          for (const listener of begin) listener.call(this.#server, socket);
        },
        () => {
          counters.refused += 1;
          socket.destroy();
        },
      );
    });
    this.#server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      counters.faults += 1;
      if (isPlainRequest(error)) gate.fault(socket, spokePlain(socket.localPort));
      socket.destroy();
    });
    this.#server.on('clientError', (_error, socket: Socket) => {
      counters.faults += 1;
      if (socket.writable) endAndCut(socket, BROKEN, limits.lingerTime);
      else socket.destroy();
    });
    this.#server.on('sessionError', () => {
      counters.faults += 1;
    });
    this.#server.maxConnections = limits.connections;
    this.#server.on('drop', () => {
      counters.refused += 1;
      gate.overflow(limits.connections);
    });
    this.#server.setTimeout(limits.idleTime);
    // Only HTTP/1.1 connections have these; without a listener for `timeout` the server closes them itself.
    Object.assign(this.#server, {
      headersTimeout: limits.headerTime,
      requestTimeout: REQUEST_TIMES * limits.headerTime,
      keepAliveTimeout: limits.idleTime,
      connectionsCheckingInterval: limits.sweepInterval,
    });
    const { headerTime, idleTime, sendTime, sweepInterval } = limits;
    this.#watch = new ConnectionWatch(this.#server, {
      first: FIRST_TIMES * headerTime,
      idle: idleTime,
      send: sendTime,
      sweep: sweepInterval,
    });
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Replaces all certificates. Open connections keep theirs; the first is for clients without SNI. Throws for invalid PEM. */
  setCertificates(certificates: readonly Certificate[]): void {
    this.#certificates.replace(certificates, this.#server);
  }

  async listen(address: ListenAddress): Promise<number> {
    const port = await listenShared(this.#server, address);
    this.#server.on('error', (error) => this.#onError(error));
    this.#sweeper = setInterval(() => this.#sweep(), this.#limits.sweepInterval);
    this.#watch.start();
    return port;
  }

  /** Stops listening, waits up to `grace` ms for answers in progress, then drops the remaining ones. Idempotent. */
  async close(grace: number): Promise<void> {
    if (!this.#server.listening) return;
    await closeShared(this.#server, grace, () => {
      for (const socket of this.#sockets) socket.destroy();
    });
    this.#watch.stop();
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    this.#sweeper = null;
  }

  #sweep(): void {
    const now = performance.now();
    for (const sink of this.#context.open) sink.sweep(now, this.#limits.sendTime);
  }

  #track(socket: Socket, remoteAddress: string, { onOpened, onClosed }: SecureListenerOptions): void {
    this.counters.opened += 1;
    this.#sockets.add(socket);
    onOpened?.(remoteAddress);
    let reason = 'ended by the peer or by a time limit';
    socket.once('error', (error) => {
      reason = error.message;
    });
    socket.once('close', () => {
      this.counters.closed += 1;
      this.#sockets.delete(socket);
      onClosed?.(remoteAddress, reason);
    });
  }
}

/** The head of a request as received. */
function requestBytes({ method, url, rawHeaders }: IncomingMessage): Buffer {
  let head = `${method} ${url} HTTP/1.1\r\n`;
  for (let n = 0; n + 1 < rawHeaders.length; n += 2) head += `${rawHeaders[n]}: ${rawHeaders[n + 1]}\r\n`;
  return Buffer.from(`${head}\r\n`, 'latin1');
}
