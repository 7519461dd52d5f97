/** The sockets of the REST API: one HTTP server per address and port, all with one dispatcher behind them. */
import { createServer, type IncomingMessage, METHODS, type Server } from 'node:http';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { type FastifyInstance, type FastifyServerFactory, fastify } from 'fastify';
import type { CrossDomainPolicy } from '../access/cross-domains.ts';
import type { Logger } from '../util/logger.ts';
import { TokenAuth } from './auth.ts';
import type { ControlPlane } from './control.ts';
import { CHALLENGE, Dispatcher, PRODUCT } from './dispatcher.ts';
import { type Answer, failure, reasonPhrase } from './envelope.ts';
import { ApiError } from './errors.ts';
import { HostRule } from './host-rule.ts';

/** PEM texts of a certificate. */
export interface Certificate {
  /** The certificate and, behind it, its chain. */
  readonly cert: string;
  readonly key: string;
}

export interface ApiServerOptions {
  readonly control: ControlPlane;
  /** Of the product, without leading `v`. */
  readonly version: string;
  readonly accessToken: string;
  /** Host names that may be used to reach the API; `*` for any. */
  readonly hostNames: readonly string[];
  readonly crossDomains: CrossDomainPolicy;
  readonly logger: Logger;
  /** Addresses to listen on. */
  readonly addresses: readonly string[];
  /** Null for no plain port; 0 for any free one. */
  readonly port: number | null;
  /** Null for no TLS port. */
  readonly tls: { readonly port: number; readonly load: () => Promise<Certificate> } | null;
}

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 60_000;
/** The one path that fastify sees: routes match raw paths, which its router would decode. */
const ONLY_PATH = '/';

/** Listens for API requests between `listen()` and `close()`. */
export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #dispatcher: Dispatcher;
  readonly #instances: FastifyInstance[] = [];
  readonly #secure: Http2SecureServer[] = [];
  readonly #sessions = new Set<ServerHttp2Session>();

  /** @throws TypeError when the access token is empty */
  constructor(options: ApiServerOptions) {
    this.#options = options;
    const { control, crossDomains, logger, version, tls } = options;
    const reloadCertificate = tls === null ? null : () => this.#reloadCertificate(tls.load);
    this.#dispatcher = new Dispatcher({
      control,
      crossDomains,
      logger,
      server: { version, gitVersion: `v${version}`, reloadCertificate },
      auth: new TokenAuth(options.accessToken),
      hosts: new HostRule(options.hostNames),
    });
  }

  /** Opens all ports. When one fails the others are closed again. */
  async listen(): Promise<void> {
    const { addresses, port, tls } = this.#options;
    try {
      for (const host of addresses) {
        if (port !== null) await this.#open(host, port, this.#plainServer);
        if (tls !== null) await this.#open(host, tls.port, this.#secureServer(await tls.load()));
      }
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Where the server listens: plain ports first come first, in the order of the addresses. */
  get addresses(): AddressInfo[] {
    return this.#instances.flatMap((instance) => addressesOf(instance));
  }

  /** Stops listening and ends all connections. Idempotent. */
  async close(): Promise<void> {
    const closing = this.#instances.splice(0);
    for (const session of this.#sessions) session.destroy();
    this.#sessions.clear();
    this.#secure.length = 0;
    await Promise.all(closing.map((instance) => instance.close()));
  }

  async #open(host: string, port: number, serverFactory: FastifyServerFactory): Promise<void> {
    const instance = fastify({
      serverFactory,
      clientErrorHandler: answerBrokenRequest,
      forceCloseConnections: true,
      return503OnClosing: false,
      rewriteUrl: () => ONLY_PATH,
    });
    // Bodies are read by the dispatcher, after authentication.
    for (const method of METHODS) instance.addHttpMethod(method, { hasBody: false, overrideExisting: true });
    instance.route({
      method: METHODS,
      url: ONLY_PATH,
      exposeHeadRoute: false,
      handler: (request, reply) => {
        reply.hijack();
        this.#dispatcher.handle(request.raw, reply.raw, request.originalUrl);
      },
    });
    this.#instances.push(instance);
    await instance.listen({ host, port });
    for (const address of addressesOf(instance)) {
      this.#options.logger.info({ address: address.address, port: address.port }, 'API listening');
    }
  }

  readonly #plainServer: FastifyServerFactory = (handler) => {
    const server = createServer({ requireHostHeader: false, keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS, ...timeouts() }, handler);
    return this.#watched(server);
  };

  #secureServer(certificate: Certificate): FastifyServerFactory {
    return (handler) => {
      const secure = createSecureServer({ ...certificate, ...http1Options(), allowHTTP1: true });
      // The compatibility layer of http2 gives requests and responses the shape that http has.
      const server = secure as unknown as Server;
      server.on('request', handler);
      secure.on('session', (session) => {
        this.#sessions.add(session);
        session.once('close', () => this.#sessions.delete(session));
      });
      this.#secure.push(secure);
      return this.#watched(server);
    };
  }

  /** Answers what never becomes a request: broken ones, late ones and CONNECT. */
  #watched(server: Server): Server {
    server.on('connect', (request: IncomingMessage, socket: Socket) => writeAndClose(socket, this.#dispatcher.refuse(request)));
    return server;
  }

  async #reloadCertificate(load: () => Promise<Certificate>): Promise<void> {
    const certificate = await load();
    for (const server of this.#secure) server.setSecureContext(certificate);
  }
}

function addressesOf(instance: FastifyInstance): AddressInfo[] {
  return instance.addresses().filter((address) => typeof address !== 'string');
}

function timeouts() {
  return { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS };
}

function http1Options() {
  return { requireHostHeader: false, ...timeouts() };
}

/** Answers a connection whose request could not be read. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  writeAndClose(socket, failure(brokenRequest(error)));
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

function writeAndClose(socket: Socket, answer: Answer): void {
  const head = [
    `HTTP/1.1 ${answer.status} ${reasonPhrase(answer.status)}`,
    `Server: ${PRODUCT}`,
    ...(answer.status === 401 ? [`WWW-Authenticate: ${CHALLENGE}`] : []),
    'Connection: close',
    'Content-Type: application/json;charset=UTF-8',
    `Content-Length: ${Buffer.byteLength(answer.body)}`,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${answer.body}`);
}
