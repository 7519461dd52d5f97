/** Signalling requests that came through the delivery ports: decides who takes them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { RelayedPeer } from '../../../delivery/relayed-peer.ts';
import type { AddressShares } from '../../../util/address-shares.ts';
import { type Newcomer, NO_TURNS, type Turns } from '../../../util/newcomer-turns.ts';
import type { RefusalLog } from '../../../util/refusal-log.ts';
import { HttpFault } from '../../../wire/http/http-fault.ts';
import { type AskedPlace, askedPlace } from './asked-place.ts';
import { requestPlaceOf } from './request-place.ts';

/** Loaded on demand: a bundled import would load it at the start, also for servers without WebRTC. */
const loadServer = (): typeof import('ws').WebSocketServer => createRequire(import.meta.url)('ws').WebSocketServer;

/** Maximum length of a peer's message: ten times a session description with many candidates. */
const MAX_MESSAGE = 256 * 1024;
const CLOSE_UNSUPPORTED = 1008;

/** One side of signalling: players or publishers. */
export interface SignallingSide {
  /** WHIP or WHEP. Answers every request. */
  request(request: IncomingMessage, response: ServerResponse, place: AskedPlace, client: RelayedPeer): void;
  /** A connection of the WebSocket protocol; it is the side's from now on. */
  connected(socket: WebSocket, place: AskedPlace, client: RelayedPeer): void;
}

/** A side and its ports. */
export interface ListeningSide {
  readonly side: SignallingSide;
  /** Ports on which the side answers; requests on other delivery ports are refused. */
  readonly ports: ReadonlySet<number>;
}

/** Handlers of requests, and how host names lead to virtual hosts. */
export interface SignallingOptions {
  /** Null where this server does not listen for them. */
  readonly play: ListeningSide | null;
  readonly publish: ListeningSide | null;
  readonly virtualHostFor: (host: string) => string | undefined;
  /** WebSockets by address that have not asked for anything; absent: no limit. */
  readonly silent?: AddressShares;
  /** WebSockets are opened when it is their turn; absent: at once. */
  readonly turns?: Turns;
  /** Logs refused connections; absent: they are not logged. */
  readonly refusals?: RefusalLog;
}

/** Handed requests by the `MainThreadServer`; the server calls `close`. */
export class SignallingServer {
  readonly #options: SignallingOptions;
  readonly #sockets = new (loadServer())({ noServer: true, maxPayload: MAX_MESSAGE, perMessageDeflate: false });

  constructor(options: SignallingOptions) {
    this.#options = options;
  }

  request(request: IncomingMessage, response: ServerResponse, client: RelayedPeer): void {
    const place = this.#place(request, response, client);
    if (place === null) return;
    const side = this.#sideFor(place.direction === 'whep' ? 'play' : 'publish', client);
    if (side !== null) {
      side.request(request, response, place, client);
      return;
    }
    response.statusCode = 404;
    response.setHeader('Content-Type', 'text/plain');
    response.end(`this port does not listen for ${place.direction === 'whep' ? 'players' : 'publishers'} over WebRTC\n`);
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, client: RelayedPeer): void {
    let place: AskedPlace;
    try {
      place = this.#placeOf(request, client, 'ws');
    } catch {
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const { silent, refusals } = this.#options;
    const slot = silent?.enter(client.address);
    if (slot === null) {
      refusals?.note('WebSockets refused: too many of their address have asked for nothing', {
        peer: client.address,
        share: silent?.share,
      });
      socket.end('HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    socket.once('close', () => slot?.leave());
    this.#takeTurn(socket, client, () =>
      this.#sockets.handleUpgrade(request, socket, head, (connection) => {
        // From here on its sessions are counted.
        connection.once('message', () => slot?.leave());
        this.#connected(connection, place, client);
      }),
    );
  }

  /** Ends all connections. Idempotent. */
  close(): void {
    for (const connection of this.#sockets.clients) connection.terminate();
    this.#sockets.close();
  }

  /** A client that has left gives up its turn. */
  #takeTurn(socket: Duplex, { address }: RelayedPeer, open: () => void): void {
    const newcomer: Newcomer = {
      client: address,
      enter: () => {
        if (!socket.destroyed) open();
      },
      failed: () => socket.destroy(),
      // The socket is not read, so it would not end without this.
      refused: () =>
        socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n', () =>
          socket.destroy(),
        ),
    };
    const { turns = NO_TURNS } = this.#options;
    turns.take(newcomer);
    socket.once('close', () => turns.leave(newcomer));
  }

  #connected(socket: WebSocket, place: AskedPlace, client: RelayedPeer): void {
    const isPublisher = place.direction === 'send';
    const side = this.#sideFor(isPublisher ? 'publish' : 'play', client);
    if (side !== null) {
      side.connected(socket, place, client);
      return;
    }
    socket.on('error', () => socket.terminate());
    socket.send(
      JSON.stringify({ code: 404, error: `This port does not listen for ${isPublisher ? 'publishers' : 'players'} over WebRTC` }),
    );
    socket.close(CLOSE_UNSUPPORTED);
  }

  #sideFor(use: 'play' | 'publish', { port }: RelayedPeer): SignallingSide | null {
    const listening = this.#options[use];
    return listening?.ports.has(port) === true ? listening.side : null;
  }

  #place(request: IncomingMessage, response: ServerResponse, client: RelayedPeer): AskedPlace | null {
    try {
      return this.#placeOf(request, client, 'http');
    } catch (error) {
      if (!(error instanceof HttpFault)) throw error;
      response.statusCode = error.status;
      response.end(`${error.message}\n`);
      return null;
    }
  }

  #placeOf(request: IncomingMessage, client: RelayedPeer, scheme: 'ws' | 'http'): AskedPlace {
    const place = requestPlaceOf(request.url ?? '/', request.headers.host ?? '', this.#options.virtualHostFor);
    return askedPlace(place, request, client, scheme);
  }
}
