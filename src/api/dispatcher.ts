/** Handles a request from its socket to its answer: CORS, host rule, authentication, route, body, lookup, handler. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { ALLOW_ORIGIN, type CrossDomainPolicy } from '../access/cross-domains.ts';
import { internalAppName } from '../core/stream-address.ts';
import { inSlices } from '../util/in-slices.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import { HIDDEN_ADDRESS } from '../util/private-logger.ts';
import type { TokenAuth, TokenHolder } from './auth.ts';
import type { ConsoleSite } from './console-site.ts';
import type { ControlPlane } from './control.ts';
import { type Answer, failure, INEFFECTIVE_HEADER, maskedAnswer, PRODUCT, REASON_HEADER, reasonPhrase } from './envelope.ts';
import { ApiError, causedBy, diskReason, type ErrorCode } from './errors.ts';
import { sendFile } from './file-answer.ts';
import type { HostRule } from './host-rule.ts';
import { JsonSyntaxError, jsonSteps, readJson } from './json/lenient-json.ts';
import { BodyAborted, readBody } from './request-body.ts';
import { RequestLog } from './request-log.ts';
import { queryParameterOf, rawPath } from './request-path.ts';
import { type ApiServerFacts, isDeclarable, type Route, type RouteMatch, RouteTable } from './route.ts';
import { routes } from './routes.ts';
import type { WrongTokenLog } from './wrong-token-log.ts';

/** Value of `WWW-Authenticate`. */
const CHALLENGE = `Basic realm="${PRODUCT}"`;
/** Methods that change something; `PUT` belongs to no route. */
const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
/** Codes whose contract text gives no reason. The reason is added for clients that may reload certificates or pull streams. */
const TELLS_REASON: ReadonlySet<string> = new Set<ErrorCode>([
  'CERTIFICATE_RELOAD_FAILED',
  'API_CERTIFICATE_FAILED',
  'PROVIDER_FORBIDDEN',
  'MUX_DISABLED',
  'SCHEDULE_PATCH_INVALID',
  'STREAM_PULL_FAILED',
]);
/** Characters. A longer body is read in slices. */
const LONG_BODY = 65_536;
/** Statuses from here on are faults of the server. */
const SERVER_FAULT = 500;
/** Status for a source that does not deliver, which is logged where it fails. */
const BAD_GATEWAY = 502;
/** Headers of an endless answer: proxies must neither cache nor buffer it. */
const STREAMED = ['Cache-Control', 'no-store', 'X-Accel-Buffering', 'no'];
const NO_CONTENT: Answer = { status: 204, body: '' };

/** Null: the client has gone. */
type Settled = Answer | null;

/** Rules for clients; can be exchanged while the server runs. */
export interface AdmissionRules {
  readonly auth: TokenAuth;
  readonly hosts: HostRule;
  readonly crossDomains: CrossDomainPolicy;
}

/** Dependencies of all requests of one API server. */
export interface DispatcherOptions extends AdmissionRules {
  /** The pages of the console. */
  readonly site: ConsoleSite;
  readonly control: ControlPlane;
  readonly server: ApiServerFacts;
  readonly wrongTokens: WrongTokenLog;
  readonly logger: Logger;
  /** Time limit for the body of a request, ms. */
  readonly bodyTime: number;
  /** The routes; default: the whole API. */
  readonly routes?: readonly Route[];
}

/** Answers requests of all API ports. It owns no sockets. */
export class Dispatcher {
  #options: DispatcherOptions;
  readonly #routes: RouteTable;
  /** The token holders of requests. */
  readonly #holders = new WeakMap<IncomingMessage, TokenHolder>();
  /** The body of the request, as JSON. */
  readonly #bodies = new WeakMap<IncomingMessage, unknown>();
  readonly #lines: RequestLog;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#routes = new RouteTable(options.routes ?? routes);
    this.#lines = new RequestLog(options.logger);
  }

  /** Applies other rules to requests from now on. */
  amend(rules: AdmissionRules): void {
    this.#options = { ...this.#options, ...rules };
  }

  /** Answers `request`; `target` is the request target as received. Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse, target: string): void {
    const path = rawPath(target);
    // A port with only some of the routes has no pages.
    if (path !== null && this.#options.routes === undefined && this.#options.site.wants(request, path)) {
      void this.#showPage(request, response, target, path);
      return;
    }
    const answer = this.#guarded(request, target, () => this.#answer(request, target));
    if (answer instanceof Promise) void this.#sendLater(request, response, target, answer);
    else this.#sendNow(request, response, target, answer);
  }

  /** Pages are subject to the rule of host names, and need no token. */
  async #showPage(request: IncomingMessage, response: ServerResponse, target: string, path: string): Promise<void> {
    const host = hostOf(request);
    const refused = this.#options.hosts.check(host);
    try {
      if (refused !== null) this.#sendNow(request, response, target, failure(refused));
      else await this.#options.site.answer(request, response, path, host ?? '');
    } catch (error) {
      if (response.headersSent) request.destroy();
      else this.#sendNow(request, response, target, this.#failed(request, target, error));
    }
  }

  /** The answer to a request that cannot have a route (CONNECT). */
  refuse(request: IncomingMessage): Answer {
    const asked = this.#admit(request);
    return failure(asked instanceof ApiError ? asked : new ApiError('CONTROLLER_NOT_FOUND'));
  }

  #answer(request: IncomingMessage, target: string): Answer | Promise<Answer> {
    const path = rawPath(target);
    if (path === null) return failure(new ApiError('MALFORMED_REQUEST', 'the request target is not a path'));
    if (request.method === 'OPTIONS') return NO_CONTENT;
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '');
    const match = this.#routes.find(method, path);
    if (match?.route.open === true) return this.#call(match, target, request, null);
    const refused =
      match?.route.signed === true && queryParameterOf(target, 'token') !== undefined
        ? this.#options.hosts.check(hostOf(request))
        : undefined;
    if (refused instanceof ApiError) return failure(refused);
    if (refused === null && match !== null && this.#options.server.health.phase !== 'stopping')
      return this.#call(match, target, request, null);
    const holder = this.#options.hosts.check(hostOf(request)) ?? this.#admit(request);
    if (holder instanceof ApiError) return failure(holder);
    if (this.#options.server.health.phase === 'stopping') return failure(new ApiError('SERVER_STOPPING'));
    if (holder.path !== undefined && holder.path !== match?.route.path)
      return failure(new ApiError('TOKEN_OTHER_PATH', holder.name, holder.path));
    const reads = (method === 'GET' || match?.route.reads === true) && match?.route.needsWrite !== true;
    const what = match?.route.needsWrite === true ? `${method} ${match.route.path}` : method;
    if (!holder.mayWrite && !reads) return failure(new ApiError('TOKEN_READ_ONLY', holder.name, what));
    if (match === null) return this.#refuseUnknown(method, path, target, request);
    const answer = this.#callMatch(request, match, target);
    if (holder.mayWrite) return answer;
    return answer instanceof Promise ? answer.then(maskedAnswer) : maskedAnswer(answer);
  }

  #callMatch(request: IncomingMessage, match: RouteMatch, target: string): Answer | Promise<Answer> {
    const url = `${isSecure(request) ? 'https' : 'http'}://${hostOf(request) ?? ''}${target}`;
    return match.route.body === undefined ? this.#call(match, url, request, null) : this.#callWithBody(request, match, url);
  }

  /** Answers a method and path without a route. For a resource declared by a file, the answer is that it cannot be changed. */
  #refuseUnknown(method: string, path: string, target: string, request: IncomingMessage): Answer | Promise<Answer> {
    const resource = WRITES.has(method) ? this.#routes.find('GET', path) : null;
    const name = resource?.parameters['vhost'] ?? '';
    if (resource === null || !isDeclarable(resource.route) || this.#options.control.virtualHost(name)?.readOnly !== true) {
      return failure(new ApiError('CONTROLLER_NOT_FOUND'));
    }
    const handle = (): never => {
      throw new ApiError('VHOST_READ_ONLY', name);
    };
    return this.#call({ ...resource, route: { ...resource.route, handle } as Route }, target, request, null);
  }

  /** The holder of the request's token. A wrong token is logged, a missing one is not, because browsers begin without a token. */
  #admit(request: IncomingMessage): TokenHolder | ApiError {
    const { auth, wrongTokens } = this.#options;
    const holder = auth.check(request.headers.authorization);
    if (!(holder instanceof ApiError)) this.#holders.set(request, holder);
    else if (holder.code !== 'AUTH_HEADER_REQUIRED') {
      wrongTokens.note(request.socket.remoteAddress ?? '', { peer: this.#peerOf(request), detail: holder.message });
    }
    return holder;
  }

  async #callWithBody(request: IncomingMessage, match: RouteMatch, url: string): Promise<Answer> {
    const text = await readBody(request, this.#options.bodyTime);
    const body = await parseBody(text);
    this.#bodies.set(request, body);
    if (text.length > LONG_BODY) await setImmediate();
    return this.#call(match, url, request, body);
  }

  /** Looks up the objects named by the path, from the outside in, and calls the handler. */
  #call({ route, parameters }: RouteMatch, url: string, asked: IncomingMessage, body: unknown): Answer | Promise<Answer> {
    const { control, server } = this.#options;
    const parameter = (name: string): string => parameters[name] ?? '';
    const header = (name: string): string | undefined => {
      const value = asked.headers[name];
      return Array.isArray(value) ? value[0] : value;
    };
    const request = {
      control,
      server,
      url,
      body,
      mayWrite: this.#holders.get(asked)?.mayWrite === true,
      parameter,
      lastEventId: lastEventIdOf(asked),
      query: (name: string) => queryParameterOf(url, name),
      header,
    };
    if (route.level === 'server') return route.handle(request);

    const vhost = control.virtualHost(request.parameter('vhost'));
    if (vhost === undefined) throw new ApiError('VHOST_NOT_FOUND', request.parameter('vhost'));
    if (route.level === 'vhost') return route.handle({ ...request, vhost });

    const app = control.application(vhost.name, request.parameter('app'));
    if (app === undefined) throw new ApiError(route.missing ?? 'APP_NOT_FOUND', vhost.name, request.parameter('app'));
    if (route.level === 'app') return route.handle({ ...request, vhost, app });

    const stream = app.stream(request.parameter('stream'));
    const internal = internalAppName(vhost.name, app.name);
    if (stream === undefined) throw new ApiError(route.missing ?? 'STREAM_NOT_FOUND', vhost.name, internal, request.parameter('stream'));
    return route.handle({ ...request, vhost, app, stream });
  }

  /** Runs `work` and turns an error into a response. */
  #guarded(request: IncomingMessage, target: string, work: () => Answer | Promise<Answer>): Settled | Promise<Settled> {
    try {
      const answer = work();
      return answer instanceof Promise ? answer.catch((error: unknown) => this.#failed(request, target, error)) : answer;
    } catch (error) {
      return this.#failed(request, target, error);
    }
  }

  #failed(request: IncomingMessage, target: string, error: unknown): Settled {
    if (error instanceof BodyAborted) return null;
    const refused = error instanceof ApiError ? error : causedBy(new ApiError('INTERNAL'), error);
    if (refused.cause !== undefined && refused.status >= SERVER_FAULT && refused.status !== BAD_GATEWAY) {
      const { method } = request;
      this.#options.logger.error({ err: refused.cause, method, target, peer: this.#peerOf(request) }, 'API request failed');
    }
    const reason = TELLS_REASON.has(refused.code) ? messageOf(refused.cause) : diskReason(refused);
    return { ...failure(refused), ...(reason !== null && { reason }) };
  }

  async #sendLater(request: IncomingMessage, response: ServerResponse, target: string, answer: Promise<Settled>): Promise<void> {
    this.#sendNow(request, response, target, await answer);
  }

  #sendNow(request: IncomingMessage, response: ServerResponse, target: string, answer: Settled): void {
    try {
      this.#send(request, response, target, answer);
    } catch (error) {
      this.#options.logger.error({ err: error, target }, 'API answer could not be sent');
      request.destroy();
    }
  }

  /** The headers of `answer` to a request with the headers `asked`, as names and values in turn. */
  headers(asked: IncomingHttpHeaders, answer: Answer): string[] {
    const headers = ['Server', PRODUCT, 'Vary', 'Origin'];
    const { pairs } = this.#options.crossDomains.headers(asked.origin, asked['access-control-request-headers']);
    for (const [name, value] of pairs) headers.push(name, value);
    const own = [
      ...((answer.ineffective?.length ?? 0) > 0 ? [INEFFECTIVE_HEADER] : []),
      ...(answer.reason === undefined ? [] : [REASON_HEADER]),
    ];
    // Scripts of other origins can read only exposed headers.
    if (own.length > 0 && pairs.some(([name]) => name === ALLOW_ORIGIN)) headers.push('Access-Control-Expose-Headers', own.join(', '));
    headers.push('Content-Type', answer.status === 204 ? 'text/html' : (answer.type ?? 'application/json;charset=UTF-8'));
    for (const [name, value] of answer.headers ?? []) headers.push(name, value);
    if (answer.stream !== undefined) headers.push(...STREAMED);
    else if (answer.status !== 204) headers.push('Content-Length', String(answer.size ?? answer.body.length));
    if (answer.ineffective !== undefined && answer.ineffective.length > 0) headers.push(INEFFECTIVE_HEADER, answer.ineffective.join(', '));
    if (answer.status === 401) headers.push('WWW-Authenticate', CHALLENGE);
    if (answer.reason !== undefined) headers.push(REASON_HEADER, answer.reason.replace(/[^\x20-\x7e]+/g, ' '));
    return headers;
  }

  #send(request: IncomingMessage, response: ServerResponse, target: string, answer: Settled): void {
    if (answer === null) return;
    const headers = this.headers(request.headers, answer);
    // The rest of the request will not be read.
    if (answer.status === 408 && request.httpVersionMajor < 2) headers.push('Connection', 'close');
    // HTTP/2 has no reason phrases.
    if (request.httpVersionMajor >= 2) response.writeHead(answer.status, headers);
    else response.writeHead(answer.status, reasonPhrase(answer.status), headers);
    if (answer.file !== undefined && request.method !== 'HEAD') void sendFile(response, answer.file, this.#options.bodyTime);
    else if (request.method === 'HEAD') {
      response.end();
      void answer.file?.file.close().catch(() => undefined);
    } else if (answer.stream !== undefined) answer.stream(response);
    else response.end(answer.body, 'latin1');
    this.#log(request, target, answer);
  }

  #log(request: IncomingMessage, target: string, answer: Answer): void {
    const reads = this.#routes.find(request.method ?? '', rawPath(target) ?? '')?.route.reads === true;
    const asked = { target, reads, body: this.#bodies.get(request), peer: this.#peerOf(request), token: this.#holders.get(request)?.name };
    this.#lines.answered(request, asked, answer);
  }

  #peerOf({ socket }: IncomingMessage): string | undefined {
    return this.#options.server.privacyProtection ? HIDDEN_ADDRESS : socket.remoteAddress;
  }
}

async function parseBody(text: string): Promise<unknown> {
  if (text === '') return null;
  try {
    return text.length > LONG_BODY ? await inSlices(jsonSteps(text)) : readJson(text);
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw new ApiError('JSON_SYNTAX', error.message);
    throw error;
  }
}

/** HTTP/2 has a pseudo header instead of `Host`. */
function hostOf(request: IncomingMessage): string | undefined {
  const authority = request.headers[':authority'];
  return typeof authority === 'string' ? authority : request.headers.host;
}

/** Id of the last event that the client already has. */
function lastEventIdOf({ headers }: IncomingMessage): string | undefined {
  const id = headers['last-event-id'];
  return typeof id === 'string' ? id : undefined;
}

function isSecure({ socket }: IncomingMessage): boolean {
  return 'encrypted' in socket && socket.encrypted === true;
}
