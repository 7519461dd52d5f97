/** Calls the management API: fills names into paths, opens envelopes and throws failures. Works in browsers too. */
import type { CallArguments, CallMethod, CallResult, CallSettings, PathOf } from './call-types.ts';
import { isFailure, MillraceError, reasonOf, UnreachableError } from './error.ts';
import { type EventOptions, followEvents, type LiveEvent, type LogEvent, type LogOptions } from './event-stream.ts';
import { pathWith } from './path.ts';

const DEFAULT_TIMEOUT_MS = 30_000;
const REASON_HEADER = 'millrace-reason';
const INEFFECTIVE_HEADER = 'millrace-ineffective';

/** Address of the server, and credentials. */
export interface ClientOptions {
  /** Scheme, host and port of the API, such as `http://127.0.0.1:8081`; a path in it is put before the API's paths. */
  readonly url: string;
  /** Access token, sent as Bearer; absent: none. */
  readonly token?: string;
  /** Time limit for the whole answer of a call, ms; default 30,000. */
  readonly timeout?: number;
  /** Replacement for the global `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/** Options of an untyped request. */
export interface RequestOptions extends CallSettings {
  /** Sent as JSON; absent: no body. */
  readonly body?: unknown;
}

/** A successful answer of the server. */
export interface ServerAnswer {
  readonly status: number;
  /** The body: parsed, or as text if it is not JSON. */
  readonly body: unknown;
  /** Keys of settings in the request or answer that have no effect on this server. */
  readonly ineffective: readonly string[];
}

interface NamedOptions extends RequestOptions {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | undefined>>;
}

/** A client of one server. Holds no connection: there is nothing to close. */
export class MillraceClient {
  /** The base URL of calls, without a trailing slash. */
  readonly url: string;
  readonly #token: string | undefined;
  readonly #timeout: number;
  readonly #fetch: NonNullable<ClientOptions['fetch']>;

  /** @throws TypeError if the URL is not an HTTP URL */
  constructor({ url, token, timeout = DEFAULT_TIMEOUT_MS, fetch = (...call) => globalThis.fetch(...call) }: ClientOptions) {
    if (!/^https?:$/.test(new URL(url).protocol))
      throw new TypeError(`The address of the API begins with http:// or https://, not as '${url}'`);
    this.url = url.replace(/\/+$/, '');
    this.#token = token;
    this.#timeout = timeout;
    this.#fetch = fetch;
  }

  /** Sends GET to a `path` of the OpenAPI document. Rejects as `request` does. */
  get<P extends PathOf<'get'>>(path: P, ...[options]: CallArguments<'get', P>): Promise<CallResult<'get', P>> {
    return this.#call('get', path, options);
  }

  /** Sends POST with `body`; a batch resolves only if every item succeeded. Rejects as `request` does. */
  post<P extends PathOf<'post'>>(path: P, ...[options]: CallArguments<'post', P>): Promise<CallResult<'post', P>> {
    return this.#call('post', path, options);
  }

  /** Sends PATCH with `body`. Rejects as `request` does. */
  patch<P extends PathOf<'patch'>>(path: P, ...[options]: CallArguments<'patch', P>): Promise<CallResult<'patch', P>> {
    return this.#call('patch', path, options);
  }

  /** Sends DELETE to `path`. Rejects as `request` does. */
  delete<P extends PathOf<'delete'>>(path: P, ...[options]: CallArguments<'delete', P>): Promise<CallResult<'delete', P>> {
    return this.#call('delete', path, options);
  }

  /**
   * Sends a request to an unchanged path and query, and returns the whole body.
   * @throws MillraceError (rejects) if the answer is a failure, with 207 if some items of a batch failed
   * @throws UnreachableError (rejects) if no answer came in time; an aborted `signal` rejects with its own reason
   */
  async request(method: string, path: string, { body, signal, timeout = this.#timeout }: RequestOptions = {}): Promise<ServerAnswer> {
    const deadline = AbortSignal.timeout(timeout);
    const either = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
    try {
      const answer = await this.#send(method, path, { accept: 'application/json' }, either, body);
      const ineffective = answer.headers.get(INEFFECTIVE_HEADER)?.split(', ') ?? [];
      return { status: answer.status, body: parsed(await answer.text()), ineffective };
    } catch (error) {
      if (error instanceof MillraceError) throw error;
      if (signal?.aborted === true) throw signal.reason;
      const why = deadline.aborted ? `within ${timeout} ms` : `(${reasonOf(error)})`;
      throw new UnreachableError(`no answer from ${this.url} ${why}`, { cause: error });
    }
  }

  /**
   * Events of the server, live. `hello` comes first: request the displayed state then, and again after a `gap`. Reconnects when the
   * connection breaks. Leave the loop, or abort, to end it. Rejects as `request` does if the first connection fails.
   */
  events(options: EventOptions = {}): AsyncGenerator<LiveEvent, never> {
    const { types, vhost, app, stream, back } = options;
    const path = pathWith('/v1/events', {}, { types, vhost, app, stream, back: back === undefined ? undefined : String(back) });
    return followEvents((headers, signal) => this.#send('GET', path, headers, signal), options, this.url, this.#timeout);
  }

  /**
   * Lines of the log: `hello`, then some earlier lines, then each new line. The token must allow changes. Otherwise like
   * `events`.
   */
  logs(options: LogOptions = {}): AsyncGenerator<LogEvent, never> {
    const { level, lines } = options;
    const path = pathWith('/v2/logs', {}, { level, lines: lines === undefined ? undefined : String(lines) });
    return followEvents((headers, signal) => this.#send('GET', path, headers, signal), options, this.url, this.#timeout);
  }

  /** Resolves with the beginning of a successful answer; rejects as `fetch` does. */
  async #send(method: string, path: string, headers: Record<string, string>, signal: AbortSignal, body?: unknown): Promise<Response> {
    const answer = await this.#fetch(this.url + path, {
      method: method.toUpperCase(),
      headers: {
        ...headers,
        ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      signal,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!isFailure(answer.status) && answer.status !== 207) return answer;
    throw new MillraceError(answer.status, parsed(await answer.text()), answer.headers.get(REASON_HEADER));
  }

  async #call<M extends CallMethod, P extends PathOf<M>>(method: M, path: P, options: NamedOptions = {}): Promise<CallResult<M, P>> {
    const { body } = await this.request(method, pathWith(path, options.path, options.query), options);
    return (Array.isArray(body) ? body.map(contentOf) : contentOf(body)) as CallResult<M, P>;
  }
}

/** The content of an envelope; a body without one is returned unchanged. */
function contentOf(body: unknown): unknown {
  const isEnvelope = typeof body === 'object' && body !== null && 'statusCode' in body;
  return isEnvelope ? (body as { readonly response?: unknown }).response : body;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
