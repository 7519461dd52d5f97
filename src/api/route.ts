/** Routes, and the search for the route of a path. */
import type { TSchema } from '@sinclair/typebox';
import type { Application } from '../core/application.ts';
import type { InboundStream } from '../core/inbound-stream.ts';
import type { VirtualHost } from '../core/virtual-host.ts';
import type { ControlPlane } from './control.ts';
import type { Answer } from './envelope.ts';
import type { ErrorCode } from './errors.ts';
import type { Health } from './health.ts';
import type { Listeners } from './listeners.ts';

/** HTTP methods of the contract's routes. */
export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** Facts about the API server itself. */
export interface ApiServerFacts {
  readonly version: string;
  readonly gitVersion: string;
  readonly health: Health;
  /** Ports of media. */
  readonly listeners: Listeners;
  /** Addresses on which media ports listen. */
  readonly mediaHosts: readonly string[];
  /** Hides addresses of peers. */
  readonly privacyProtection: boolean;
  /** Loads the certificate of the API server again; null if it has no TLS port. */
  readonly reloadCertificate: (() => Promise<void>) | null;
}

/** Arguments of every handler. */
export interface Request {
  readonly control: ControlPlane;
  readonly server: ApiServerFacts;
  /** The URL of the request. */
  readonly url: string;
  /** Null for a request without a body. */
  readonly body: unknown;
  /** Whether the client may change things; false on open routes, which have no client. */
  readonly mayWrite: boolean;
  /** Last event of a client that continues to follow events (`Last-Event-ID`). */
  readonly lastEventId?: string | undefined;
  /** A parameter of the pattern, as written in the path. */
  parameter(name: string): string;
  /** A value of the query string, decoded; undefined if absent. */
  query(name: string): string | undefined;
  /** The first header of this name, which is in lower case. */
  header(name: string): string | undefined;
}

/** For handlers below `{vhost}`, `{app}` and `{stream}`: the objects of these names. */
export interface VhostRequest extends Request {
  readonly vhost: VirtualHost;
}
/** For handlers of routes of level `app`: both objects exist. */
export interface AppRequest extends VhostRequest {
  readonly app: Application;
}
/** For handlers of routes of level `stream`. The stream may end while a handler awaits. */
export interface StreamRequest extends AppRequest {
  readonly stream: InboundStream;
}

const DECLARABLE = /^\/v1\/vhosts\/\{vhost\}(?:\/apps(?:\/\{app\}(?:\/outputProfiles(?:\/\{profile\})?)?)?)?$/;

type Handler<R> = (request: R) => Answer | Promise<Answer>;

interface RouteBase {
  readonly method: Method;
  /** `/v1/vhosts/{vhost}/apps/{app}:action`; `{vhost}`, `{app}`, `{stream}` are looked up, down to its level, before the handler runs. */
  readonly path: string;
  readonly summary: string;
  /** Known members of the query string with their meanings; all others are ignored. */
  readonly query?: Readonly<Record<string, string>>;
  /** Schema of the request body, if there is one. */
  readonly body?: TSchema;
  /** The body may be left out. */
  readonly bodyOptional?: boolean;
  /** Schema of `response` in the envelope. */
  readonly response?: TSchema;
  /** Answers with an array of envelopes. */
  readonly batch?: boolean;
  /** Status of success, default 200; null for an unsupported route, which has none. */
  readonly success?: 200 | 201 | null;
  /** The error for a missing application or stream; default: the error that names it. */
  readonly missing?: ErrorCode;
  /** A POST that changes nothing, so read-only tokens may send it. */
  readonly reads?: boolean;
  /** Read-only tokens may not send the request, although it changes nothing. */
  readonly needsWrite?: boolean;
  /** Open to every client: neither access token nor host name is checked. */
  readonly open?: boolean;
  /** A request with a `token` in the query need not authenticate: the handler checks it. */
  readonly signed?: boolean;
  /** Schema of the data of server-sent events, for routes that answer with them instead of an envelope. */
  readonly events?: TSchema;
  /** Responses without an envelope, by status: successes, and failures of an open route. */
  readonly plain?: Readonly<Record<number, TSchema>>;
  /** Media types of `plain` that are not JSON, without parameters. */
  readonly type?: string | readonly string[];
}

/** A route by the level of its path. */
export type Route =
  | (RouteBase & { readonly level: 'server'; readonly handle: Handler<Request> })
  | (RouteBase & { readonly level: 'vhost'; readonly handle: Handler<VhostRequest> })
  | (RouteBase & { readonly level: 'app'; readonly handle: Handler<AppRequest> })
  | (RouteBase & { readonly level: 'stream'; readonly handle: Handler<StreamRequest> });

/** A route that matches a path, with the raw text of its parameters. */
export interface RouteMatch {
  readonly route: Route;
  readonly parameters: Readonly<Record<string, string>>;
}

interface CompiledRoute {
  readonly route: Route;
  readonly pattern: RegExp;
}

/** Whether the path names an object that a configuration file can declare: a virtual host, an application, an output profile. */
export function isDeclarable({ path }: Route): boolean {
  return DECLARABLE.test(path);
}

/** Finds routes by method and raw path. Earlier routes win. */
export class RouteTable {
  readonly #byShape = new Map<string, CompiledRoute[]>();

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const shape = shapeOf(route.method, route.path);
      const compiled = { route, pattern: compilePattern(route.path) };
      const list = this.#byShape.get(shape);
      if (list === undefined) this.#byShape.set(shape, [compiled]);
      else list.push(compiled);
    }
  }

  find(method: string, path: string): RouteMatch | null {
    for (const { route, pattern } of this.#byShape.get(shapeOf(method, path)) ?? []) {
      const match = pattern.exec(path);
      if (match !== null) return { route, parameters: match.groups ?? {} };
    }
    return null;
  }
}

/** Parameters never contain a slash, so the number of slashes already excludes most routes. */
function shapeOf(method: string, path: string): string {
  let slashes = 0;
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) slashes += 1;
  return `${method} ${slashes}`;
}

/** A colon in an application segment starts an action; in every other segment it is part of the name. */
function compilePattern(path: string): RegExp {
  const source = path.replace(/\{(\w+)\}/g, (_parameter, name: string) => `(?<${name}>${name === 'app' ? '[^/:]*' : '[^/]*'})`);
  return new RegExp(`^${source}$`);
}
