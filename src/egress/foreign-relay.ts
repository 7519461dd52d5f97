/** Hands requests that are not delivery from an egress thread to the main thread, over a private Unix socket. */
import { connect, type Socket } from 'node:net';
import type { AnswerSink, IncomingRequest } from '../protocols/http/answer-sink.ts';
import { queryValue, splitTarget } from '../protocols/http/request-target.ts';
import { COMMON_HEADERS } from './delivery.ts';
import type { ForeignRequests } from './request-router.ts';

/** Connections a thread relays at once; more are answered 503. */
const RELAY_LIMIT = 20_000;

/** What the main thread is told of a connection: one line of JSON before the first byte of the request. */
export interface ForeignPeer {
  readonly address: string;
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
  readonly #open = new Set<Socket>();

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
    const peer: ForeignPeer = { address: sink.remoteAddress, secure: sink.secure };
    const taken = sink.takeOver();
    if (taken === null) return false;
    this.#relay(taken.socket, taken.bytes, peer);
    return true;
  }

  /** Ends what is relayed. Idempotent. */
  close(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #relay(client: Socket, bytes: Buffer, peer: ForeignPeer): void {
    const upstream = connect(this.#path);
    this.#open.add(client);
    const end = (): void => {
      this.#open.delete(client);
      client.destroy();
      upstream.destroy();
    };
    client.on('error', end);
    client.on('close', end);
    upstream.on('error', end);
    upstream.on('close', end);
    upstream.write(`${JSON.stringify(peer)}\n`);
    upstream.write(bytes);
    client.pipe(upstream);
    // The last bytes of an answer are on their way when the main thread closes.
    upstream.pipe(client);
    upstream.off('close', end);
    upstream.on('close', () => {
      if (client.writableFinished) end();
    });
  }
}
