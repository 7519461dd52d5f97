/** Hands requests that are not delivery from an egress thread to the main thread, over a private Unix socket. */
import { connect, type Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import type { AnswerSink, IncomingRequest } from '../protocols/http/answer-sink.ts';
import { queryValue, splitTarget } from '../protocols/http/request-target.ts';
import { request as httpRequest } from '../util/node-http.ts';
import { COMMON_HEADERS } from './delivery.ts';
import type { ForeignRequests } from './request-router.ts';

/** Connections a thread relays at once; more are answered 503. */
const RELAY_LIMIT = 20_000;
/** For the main thread to answer a request that it gets repeated, ms. */
const FORWARD_TIME_MS = 15_000;
/** For a client to take the end of an answer, ms. */
const LINGER_MS = 2000;

/** What the main thread is told of a connection: one line of JSON before the first byte of the request. */
export interface ForeignPeer {
  readonly address: string;
  /** The port of ours that the client called. */
  readonly port: number;
  readonly secure: boolean;
}

/** Words of the `direction` query that are signalling over plain HTTP (streaming facts 3.1). */
const HTTP_DIRECTIONS = new Set(['whip', 'whep']);

/** True for requests that belong to signalling: WebSocket upgrades, WHIP and WHEP. */
export function isSignalling(request: IncomingRequest): boolean {
  if (request.method === 'GET' && request.header('upgrade')?.toLowerCase() === 'websocket') return true;
  const { query } = splitTarget(request.target);
  return HTTP_DIRECTIONS.has(queryValue(query, 'direction') ?? '');
}

export class ForeignRelay implements ForeignRequests {
  readonly #path: string;
  readonly #open = new Set<Duplex>();

  /** `path`: the main thread's socket. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Connections being relayed. */
  get size(): number {
    return this.#open.size;
  }

  take(request: IncomingRequest, sink: AnswerSink): boolean {
    if (!isSignalling(request)) return false;
    if (this.#open.size >= RELAY_LIMIT) {
      sink.answer(503, `${COMMON_HEADERS}Retry-After: 1\r\nContent-Type: text/plain\r\n`, 'too many signalling connections\n', null);
      return true;
    }
    const peer: ForeignPeer = { address: sink.remoteAddress, port: sink.localPort, secure: sink.secure };
    const taken = sink.takeOver();
    if (taken !== null) this.relay(taken.socket, taken.bytes, peer);
    else if (request.body !== undefined) this.#forward(request, request.body, sink, peer);
    else return false;
    return true;
  }

  /** Ends what is relayed. Idempotent. */
  close(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /** Connects `client` to the main thread, which sees `bytes` first. */
  relay(client: Duplex, bytes: Buffer, peer: ForeignPeer): void {
    const upstream = this.#connect(peer);
    this.#open.add(client);
    let linger: NodeJS.Timeout | undefined;
    const end = (): void => {
      clearTimeout(linger);
      this.#open.delete(client);
      client.destroy();
      upstream.destroy();
    };
    client.on('error', end);
    client.on('close', end);
    upstream.on('error', end);
    upstream.on('close', () => {
      // The last bytes of an answer may still be on their way, and the client may never close its own side.
      if (client.writableFinished) end();
      else linger = setTimeout(end, LINGER_MS);
    });
    upstream.write(bytes);
    client.pipe(upstream);
    upstream.pipe(client);
  }

  /** Repeats a request of a connection that others share (HTTP over TLS), and brings the answer back. */
  #forward(request: IncomingRequest, body: Readable, sink: AnswerSink, peer: ForeignPeer): void {
    const upstream = httpRequest({
      method: request.method,
      path: request.target,
      headers: forwardedHeaders(request),
      createConnection: () => this.#connect(peer),
      timeout: FORWARD_TIME_MS,
    });
    let over = false;
    const fail = (): void => {
      if (over) return;
      over = true;
      upstream.destroy();
      sink.answer(502, `${COMMON_HEADERS}Content-Type: text/plain\r\n`, 'signalling did not answer\n', null);
    };
    sink.wait({
      aborted: () => {
        over = true;
        upstream.destroy();
      },
    });
    upstream.on('error', fail);
    upstream.on('timeout', fail);
    upstream.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        if (over) return;
        over = true;
        try {
          sink.answer(response.statusCode ?? 502, answerBlock(response.rawHeaders), chunks, null);
        } catch (error) {
          sink.fail(error);
        }
      });
    });
    body.pipe(upstream);
  }

  #connect(peer: ForeignPeer): Socket {
    const upstream = connect(this.#path);
    upstream.write(`${JSON.stringify(peer)}\n`);
    return upstream;
  }
}

const REQUEST_HEADERS = [
  'host',
  'origin',
  'content-type',
  'content-length',
  'if-match',
  'user-agent',
  'authorization',
  'x-real-ip',
  'x-forwarded-for',
  'access-control-request-method',
  'access-control-request-headers',
  'oven-capabilities',
];
/** Written by whoever answers the client. */
const OWN_HEADERS = new Set(['connection', 'content-length', 'transfer-encoding', 'date', 'keep-alive']);

function forwardedHeaders(request: IncomingRequest): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of REQUEST_HEADERS) {
    const value = request.header(name);
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

function answerBlock(rawHeaders: readonly string[]): string {
  let block = '';
  for (let n = 0; n + 1 < rawHeaders.length; n += 2) {
    if (!OWN_HEADERS.has((rawHeaders[n] ?? '').toLowerCase())) block += `${rawHeaders[n]}: ${rawHeaders[n + 1]}\r\n`;
  }
  return block;
}
