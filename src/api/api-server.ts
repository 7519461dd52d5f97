/** The sockets of the REST API: one HTTP server per address and port, all with one dispatcher behind them. */

import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { CrossDomainPolicy } from '../access/cross-domains.ts';
import type { CertificatePair } from '../delivery/tls/certificate-files.ts';
import { ConnectionWatch } from '../transport/tcp/connection-watch.ts';
import type { ConnectionLimiter } from '../util/connection-limiter.ts';
import { endAndCut } from '../util/end-and-cut.ts';
import { ownFamily } from '../util/listen-addresses.ts';
import type { Logger } from '../util/logger.ts';
import { createServer, protocolChoice } from '../util/node-http.ts';
import { scaleTimeouts, type TimeoutScale } from '../util/timeout-scale.ts';
import { beginsTls, isPlainRequest, spokePlain, spokeTls } from '../util/wrong-protocol.ts';
import { type AccessToken, TokenAuth } from './auth.ts';
import { ConsoleSite } from './console-site.ts';
import type { ControlPlane } from './control.ts';
import { type AdmissionRules, Dispatcher } from './dispatcher.ts';
import { type Answer, failure, reasonPhrase } from './envelope.ts';
import { ApiError } from './errors.ts';
import type { Health } from './health.ts';
import { HostRule } from './host-rule.ts';
import { type Listeners, mediaPorts, NO_LISTENERS } from './listeners.ts';
import type { Route } from './route.ts';
import { WrongTokenLog } from './wrong-token-log.ts';

/** PEM texts of a certificate. */
type CertificateTexts = Pick<CertificatePair, 'cert' | 'key'>;

/** The TLS port of an API. */
export interface ApiTls {
  readonly port: number;
  /** Rejects if no certificate can be used. */
  readonly load: () => Promise<CertificateTexts>;
  /** False: HTTP/1.1 only. Default: true. */
  readonly http2?: boolean;
  /** Called when the server is closed and needs no certificates any longer. */
  readonly release?: () => void;
}

/** Access rules of the API. */
export interface ApiRules {
  readonly accessToken: string;
  /** Further tokens. */
  readonly accessTokens?: readonly AccessToken[];
  /** Host names that may be used to reach the API; `*` for any. */
  readonly hostNames: readonly string[];
  readonly crossDomains: CrossDomainPolicy;
}

/** Ports and access rules of the API. Without `port` and `tls` it opens no socket. */
export interface ApiServerOptions extends ApiRules {
  readonly control: ControlPlane;
  /** The routes; default: the whole API. */
  readonly routes?: readonly Route[];
  /** The API's name in the log; default: `API`. */
  readonly what?: string;
  /** Version of the product, without leading `v`. */
  readonly version: string;
  /** The commit of the code; empty if unknown. */
  readonly revision: string;
  /** Hides addresses of peers. */
  readonly privacyProtection?: boolean;
  /** Limit of open connections of each port; absent: no limit. */
  readonly maxConnections?: number;
  /** Limits and counts connections; absent: no limit. */
  readonly limiter?: ConnectionLimiter;
  readonly logger: Logger;
  readonly health: Health;
  /** Listeners for media; absent: none. */
  readonly listeners?: Listeners;
  /** Addresses on which media ports listen. */
  readonly mediaHosts?: readonly string[];
  /** Addresses to bind. */
  readonly addresses: readonly string[];
  /** Null for no plain port; 0 for any free port. */
  readonly port: number | null;
  /** Null for no TLS port. */
  readonly tls: ApiTls | null;
  readonly timeoutScale?: TimeoutScale;
}

/** Time limits for clients, ms. */
const TIMES = {
  handshake: 10_000,
  /** From accepting a connection to its first request. */
  first: 20_000,
  /** Until the headers of a request, and until all of it have arrived. */
  headers: 10_000,
  request: 30_000,
  /** Connection without a request. */
  idle: 60_000,
  /** Response that the client does not read. */
  send: 60_000,
  /** Client that does not close its side after the server has. */
  linger: 2000,
  sweep: 1000,
};
/** A request without `Host` is served, because HTTP/1.0 clients send none. */
const HTTP1_OPTIONS = { requireHostHeader: false, maxHeaderSize: 65_536 };
/** The name of the main token in the log. */
const MAIN_TOKEN = 'AccessToken';
const HTTP2_SETTINGS = { maxConcurrentStreams: 100 };

/** Listens for API requests between `listen()` and `close()`. */
export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #times: typeof TIMES;
  readonly #dispatcher: Dispatcher;
  readonly #wrongTokens: WrongTokenLog;
  readonly #servers: Server[] = [];
  readonly #secure: Http2SecureServer[] = [];
  readonly #watches: ConnectionWatch[] = [];
  /** Open connections of all ports: `closeAllConnections` of Node.js misses those of HTTP/2, and those no longer in HTTP. */
  readonly #sockets = new Set<Socket>();

  /** @throws TypeError when an access token is empty or half a hash */
  constructor(options: ApiServerOptions) {
    this.#options = options;
    this.#times = scaleTimeouts(TIMES, options.timeoutScale ?? 1);
    const {
      control,
      logger,
      version,
      revision,
      health,
      tls,
      privacyProtection = false,
      listeners = NO_LISTENERS,
      mediaHosts = [],
    } = options;
    this.#wrongTokens = new WrongTokenLog(logger);
    const reloadCertificate = tls === null ? null : () => this.#reloadCertificate(tls.load);
    this.#dispatcher = new Dispatcher({
      ...admissionRules(options),
      control,
      logger,
      server: {
        version,
        gitVersion: revision === '' ? `v${version}` : `v${version}-g${revision}`,
        health,
        listeners,
        mediaHosts,
        privacyProtection,
        reloadCertificate,
      },
      wrongTokens: this.#wrongTokens,
      site: new ConsoleSite(mediaPorts(listeners)),
      bodyTime: this.#times.request,
      ...(options.routes !== undefined && { routes: options.routes }),
    });
  }

  /** Opens all ports. If one fails, the others are closed again. */
  async listen(): Promise<void> {
    const { addresses, port, tls } = this.#options;
    try {
      for (const host of addresses) {
        if (port !== null) await this.#open(host, port, this.#plainServer());
        if (tls !== null) await this.#open(host, tls.port, this.#secureServer(tls, await tls.load()));
      }
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Where the server listens: for each address the plain port, then the TLS port. */
  get addresses(): AddressInfo[] {
    return this.#servers.flatMap((server) => addressOf(server) ?? []);
  }

  /**
   * Applies other rules to requests from now on. Throws TypeError, and keeps the present rules, if an access token is empty or half a hash.
   */
  amend(rules: ApiRules): void {
    this.#dispatcher.amend(admissionRules(rules));
  }

  /** Offers new clients of the TLS port another certificate; open connections keep theirs. Throws for bad PEM. */
  setCertificate({ cert, key }: CertificateTexts): void {
    for (const server of this.#secure) server.setSecureContext({ cert, key });
  }

  /** Stops listening and ends all connections. Idempotent. */
  async close(): Promise<void> {
    const closing = this.#servers.splice(0);
    this.#secure.length = 0;
    this.#wrongTokens.close();
    this.#options.tls?.release?.();
    for (const watch of this.#watches.splice(0)) watch.stop();
    // A server that never listened calls back, too, with an error.
    const closed = Promise.all(closing.map((server) => new Promise((resolve) => server.close(resolve))));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #open(host: string, port: number, server: Server): Promise<void> {
    this.#servers.push(server);
    server.listen({ ...ownFamily(host), port });
    await once(server, 'listening');
    // A connection that cannot be accepted must not end the others.
    server.on('error', (error) => this.#options.logger.error({ err: error }, 'API listener failed'));
    const bound = addressOf(server);
    this.#options.logger.info({ address: bound?.address, port: bound?.port }, `${this.#options.what ?? 'API'} listening`);
  }

  readonly #handle: RequestListener = (request, response) => {
    this.#dispatcher.handle(request, response, request.url ?? '/');
  };

  #plainServer(): Server {
    return this.#watched(createServer({ ...HTTP1_OPTIONS, ...this.#http1Times() }));
  }

  #secureServer({ http2 = true }: ApiTls, { cert, key }: CertificateTexts): Server {
    const { handshake: handshakeTimeout, idle } = this.#times;
    const secure = createSecureServer({
      ...{ cert, key, handshakeTimeout },
      ...HTTP1_OPTIONS,
      allowHTTP1: true,
      ...protocolChoice(http2),
      settings: HTTP2_SETTINGS,
    });
    secure.setTimeout(idle);
    // `http2` does not take these as options.
    Object.assign(secure, this.#http1Times());
    this.#secure.push(secure);
    secure.on('tlsClientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      if (isPlainRequest(error)) this.#options.limiter?.fault(spokePlain(socket.localPort), socket.remoteAddress ?? '');
      socket.destroy();
    });
    // The compatibility layer of http2 gives requests and responses the form of http.
    return this.#watched(secure as unknown as Server);
  }

  #http1Times() {
    const { headers, request, idle, sweep } = this.#times;
    return { headersTimeout: headers, requestTimeout: request, keepAliveTimeout: idle, connectionsCheckingInterval: sweep };
  }

  /**
   * Answers requests, ends connections in time, and answers the requests that Node.js keeps from the handler: CONNECT, which has a response
   * only in HTTP/2, and expectations.
   */
  #watched(server: Server): Server {
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.on('request', this.#handle);
    server.on('connect', (request: IncomingMessage, peer: Socket | ServerResponse) => {
      if ('writeHead' in peer) this.#dispatcher.handle(request, peer, request.url ?? '/');
      else this.#writeAndClose(peer, request.headers, this.#dispatcher.refuse(request));
    });
    server.on('checkExpectation', this.#handle);
    server.on('clientError', this.#answerBroken);
    const { maxConnections, limiter } = this.#options;
    if (maxConnections !== undefined) server.maxConnections = maxConnections;
    server.on('drop', () => limiter?.overflow(maxConnections ?? 0));
    server.on('connection', (socket: Socket) => {
      if (limiter?.admit(socket) === false) socket.destroy();
    });
    const watch = new ConnectionWatch(server, this.#times);
    server.on('request', (request, response) => watch.began(request.socket, response));
    this.#watches.push(watch);
    watch.start();
    return server;
  }

  /** Answers a connection whose request cannot be parsed. */
  readonly #answerBroken = (error: NodeJS.ErrnoException & { readonly rawPacket?: Uint8Array }, socket: Socket): void => {
    if (beginsTls(error.rawPacket)) this.#options.limiter?.fault(spokeTls(socket.localPort), socket.remoteAddress ?? '');
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else this.#writeAndClose(socket, {}, failure(brokenRequest(error)));
  };

  #writeAndClose(socket: Socket, asked: IncomingHttpHeaders, answer: Answer): void {
    const headers = this.#dispatcher.headers(asked, answer);
    let head = `HTTP/1.1 ${answer.status} ${reasonPhrase(answer.status)}\r\nConnection: close\r\nDate: ${new Date().toUTCString()}\r\n`;
    for (let index = 0; index < headers.length; index += 2) head += `${headers[index]}: ${headers[index + 1]}\r\n`;
    endAndCut(socket, `${head}\r\n${answer.body}`, this.#times.linger);
  }

  async #reloadCertificate(load: () => Promise<CertificateTexts>): Promise<void> {
    this.setCertificate(await load());
    this.#options.logger.info({}, 'certificate of the API reloaded');
  }
}

function admissionRules({ accessToken, accessTokens = [], hostNames, crossDomains }: ApiRules): AdmissionRules {
  const auth = new TokenAuth([{ name: MAIN_TOKEN, value: accessToken, mayWrite: true }, ...accessTokens]);
  return { auth, hosts: new HostRule(hostNames), crossDomains };
}

/** Null for a server that does not listen. */
function addressOf(server: Server): AddressInfo | null {
  const address = server.address();
  return typeof address === 'string' ? null : address;
}

function brokenRequest(error: NodeJS.ErrnoException): ApiError {
  switch (error.code) {
    case 'HPE_INVALID_METHOD':
      return new ApiError('METHOD_UNKNOWN');
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError('HEADERS_TOO_LARGE');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('REQUEST_TIMEOUT');
    default:
      return new ApiError('MALFORMED_REQUEST', error.code ?? 'unknown');
  }
}
