/** Asks a control server, as webhooks do: a signed POST of JSON, answered by a JSON object. */
import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { KeyedHash } from './keyed-hash.ts';
import { messageOf } from './message-of.ts';
import * as http from './node-http.ts';

/** Connections of one client at once; further requests wait. */
const DEFAULT_MAX_CONNECTIONS = 64;
/** How long an unused connection is kept for the next question, ms. Many servers close connections after 5 s. */
const IDLE_MS = 4000;
const DEFAULT_MAX_ANSWER_BYTES = 1024 * 1024;
const DEFAULT_MAX_PENDING = 4096;
/** Error codes of a connection that its server has closed. */
const CLOSED_CODES: readonly (string | undefined)[] = ['ECONNRESET', 'EPIPE'];

/**
 * Kinds of failure: the server did not answer in time or has too many open requests; its answer is invalid; the question was aborted or the
 * client closed.
 */
export type ControlServerFaultKind = 'connection' | 'answer' | 'closed';

/** A question without an answer. The message begins with the URL of the server, without its query and credentials. */
export class ControlServerFault extends Error {
  override readonly name = 'ControlServerFault';
  readonly kind: ControlServerFaultKind;

  constructor(kind: ControlServerFaultKind, detail: string) {
    super(detail);
    this.kind = kind;
  }
}

/** The control server, and the limits of an answer. */
export interface ControlServerClientOptions {
  /** An `http` or `https` URL. */
  readonly url: string;
  /** Key of the signature. */
  readonly secretKey: string;
  /** Longest body of an answer; 1 MiB unless given. */
  readonly maxAnswerBytes?: number;
  /** Limit of unanswered questions, waiting ones included; further questions fail at once. Default: 4096. */
  readonly maxPending?: number;
  /** Maximum of connections, each with one open request; further requests wait. Default: 64. */
  readonly maxConnections?: number;
}

/** How long a question waits. */
export interface AskOptions {
  /** Time from the call to the last byte of the answer, ms, including the wait for a free connection. */
  readonly timeoutMs: number;
  /** Aborts the question, with a fault of the kind `closed`. */
  readonly signal?: AbortSignal;
}

/**
 * Sends requests to one control server, over kept connections. Redirects are not followed: the answer must come from the configured
 * address. The owner closes it.
 */
export class ControlServerClient {
  readonly #url: URL;
  readonly #place: string;
  /** Makes `X-OME-Signature` of a body: the base64url of its HMAC-SHA1, without padding. */
  readonly #signer: KeyedHash;
  readonly #maxAnswerBytes: number;
  readonly #maxPending: number;
  readonly #http: { readonly request: typeof http.request; readonly agent: Agent };
  readonly #pending = new Set<Question>();
  #closed = false;

  /** Throws a TypeError for a URL of another scheme than HTTP or HTTPS. */
  constructor({ url, secretKey, maxAnswerBytes, maxPending, maxConnections }: ControlServerClientOptions) {
    this.#url = new URL(url);
    const { protocol, host, pathname } = this.#url;
    if (protocol !== 'http:' && protocol !== 'https:')
      throw new TypeError(`a control server is asked by http or https, not by ${protocol}//`);
    this.#place = `${protocol}//${host}${pathname}`;
    this.#signer = new KeyedHash('sha1', secretKey);
    this.#maxAnswerBytes = maxAnswerBytes ?? DEFAULT_MAX_ANSWER_BYTES;
    this.#maxPending = maxPending ?? DEFAULT_MAX_PENDING;
    this.#http = clientOf(protocol, maxConnections ?? DEFAULT_MAX_CONNECTIONS);
  }

  /** Unanswered questions. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Resolves with the JSON object of an answer with status 200; rejects with a ControlServerFault in all other cases. */
  ask(content: object, { timeoutMs, signal }: AskOptions): Promise<Readonly<Record<string, unknown>>> {
    if (this.#closed || signal?.aborted === true)
      return Promise.reject(new ControlServerFault('closed', `${this.#place} gets no more requests`));
    if (this.#pending.size >= this.#maxPending) {
      const detail = `${this.#place} has ${this.#maxPending} open requests already: no more are sent`;
      return Promise.reject(new ControlServerFault('connection', detail));
    }
    const body = JSON.stringify(content);
    const { promise, resolve, reject } = Promise.withResolvers<Readonly<Record<string, unknown>>>();
    const question = new Question({
      place: this.#place,
      maxAnswerBytes: this.#maxAnswerBytes,
      timeoutMs,
      open: (reused) => this.#request(body, reused),
      onEnd: (outcome) => {
        this.#pending.delete(question);
        signal?.removeEventListener('abort', abort);
        if (outcome instanceof ControlServerFault) reject(outcome);
        else resolve(outcome);
      },
    });
    const abort = (): void => question.cancel();
    this.#pending.add(question);
    signal?.addEventListener('abort', abort);
    question.start();
    return promise;
  }

  /** Ends all questions with a fault of the kind `closed`. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const question of [...this.#pending]) question.cancel();
    this.#http.agent.destroy();
  }

  /** A POST over a kept connection, if `mayReuse`, or over a new one. */
  #request(body: string, mayReuse: boolean): ClientRequest {
    const options: RequestOptions = {
      method: 'POST',
      agent: mayReuse ? this.#http.agent : false,
      headers: {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(body),
        Accept: 'application/json',
        'User-Agent': 'Millrace',
        'X-OME-Signature': this.#signer.sign(body),
      },
    };
    const request = this.#http.request(this.#url, options);
    request.end(body);
    return request;
  }
}

interface QuestionOptions {
  readonly place: string;
  readonly maxAnswerBytes: number;
  readonly timeoutMs: number;
  readonly open: (mayReuse: boolean) => ClientRequest;
  /** Called once. */
  readonly onEnd: (outcome: Readonly<Record<string, unknown>> | ControlServerFault) => void;
}

/** One question until its answer, its deadline or its end. */
class Question {
  readonly #options: QuestionOptions;
  #request: ClientRequest | null = null;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(options: QuestionOptions) {
    this.#options = options;
  }

  start(): void {
    const { timeoutMs } = this.#options;
    this.#timer = setTimeout(() => this.#fail('connection', `has not answered within ${timeoutMs} ms`), timeoutMs);
    this.#send(true);
  }

  cancel(): void {
    this.#fail('closed', 'gets no more requests');
  }

  #send(mayReuse: boolean): void {
    let heard = false;
    let request: ClientRequest;
    try {
      request = this.#options.open(mayReuse);
    } catch (error) {
      this.#fail('connection', `cannot be asked: ${messageOf(error)}`);
      return;
    }
    this.#request = request;
    request.on('response', (response) => {
      heard = true;
      this.#read(response);
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (this.#ended || this.#request !== request) return;
      // The server closed a kept connection at the moment of its reuse, so it has not read this question.
      if (request.reusedSocket && !heard && CLOSED_CODES.includes(error.code)) this.#send(false);
      else if (error.code?.startsWith('HPE_') === true) this.#fail('answer', `does not answer in HTTP: ${error.message}`);
      else this.#fail('connection', `cannot be asked: ${error.message}`);
    });
  }

  #read(response: IncomingMessage): void {
    const limit = this.#options.maxAnswerBytes;
    const unwanted = unwantedHead(response, limit);
    if (unwanted !== null) {
      this.#fail('answer', unwanted);
      return;
    }
    const chunks: Buffer[] = [];
    let length = 0;
    response.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > limit) this.#fail('answer', tooLong(limit));
      else chunks.push(chunk);
    });
    response.on('error', (error) => this.#fail('connection', `has not finished its answer: ${error.message}`));
    response.on('end', () => this.#parse(Buffer.concat(chunks).toString()));
  }

  #parse(text: string): void {
    let answer: unknown;
    try {
      answer = JSON.parse(text);
    } catch {
      this.#fail('answer', 'does not answer with JSON');
      return;
    }
    if (typeof answer === 'object' && answer !== null && !Array.isArray(answer)) this.#end(answer as Readonly<Record<string, unknown>>);
    else this.#fail('answer', 'does not answer with a JSON object');
  }

  #fail(kind: ControlServerFaultKind, detail: string): void {
    const request = this.#request;
    this.#end(new ControlServerFault(kind, `${this.#options.place} ${detail}`));
    request?.destroy();
  }

  #end(outcome: Readonly<Record<string, unknown>> | ControlServerFault): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#options.onEnd(outcome);
  }
}

/** Error in an answer's head, before its body is read; null without one. */
function unwantedHead({ statusCode = 0, headers }: IncomingMessage, limit: number): string | null {
  if (statusCode >= 300 && statusCode < 400) return `answers with status ${statusCode}, and redirects are not followed`;
  if (statusCode !== 200) return `answers with status ${statusCode}`;
  return Number(headers['content-length'] ?? 0) > limit ? tooLong(limit) : null;
}

function tooLong(limit: number): string {
  return `answers with more than ${limit} bytes`;
}

/** The functions of HTTP or TLS. TLS is loaded only for a URL that needs it. */
function clientOf(protocol: 'http:' | 'https:', maxSockets: number) {
  const options = { keepAlive: true, maxSockets, maxFreeSockets: maxSockets, timeout: IDLE_MS };
  if (protocol === 'http:') return { request: http.request, agent: new http.Agent(options) };
  const https = process.getBuiltinModule('node:https');
  return { request: https.request, agent: new https.Agent(options) };
}
