/** Signalling requests that came through the delivery ports: decides who takes them (streaming facts 3.1). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { HttpFault } from '../../protocols/http/http-fault.ts';
import type { Logger } from '../../util/logger.ts';
import { type IceServer, PlaySignalling } from './play-signalling.ts';
import { placeOf, type RequestPlace } from './request-place.ts';
import type { WebrtcPublisher } from './webrtc-publisher.ts';
import { WhepServer } from './whep.ts';

/** Longest message of a player: a session description with many candidates is a tenth of it. */
const MESSAGE_LIMIT = 256 * 1024;
const CLOSE_UNSUPPORTED = 1008;

export interface SignallingOptions {
  readonly publisher: WebrtcPublisher;
  readonly virtualHostFor: (host: string) => string | undefined;
  /** Told to players that ask for `transport=tcp`, or to all with `forceRelay`. */
  readonly iceServers: readonly IceServer[];
  readonly forceRelay: boolean;
  readonly logger: Logger;
}

/** Where a request came from. */
export interface SignallingClient {
  readonly address: string;
}

export class SignallingServer {
  readonly #options: SignallingOptions;
  readonly #sockets = new WebSocketServer({ noServer: true, maxPayload: MESSAGE_LIMIT, perMessageDeflate: false });
  readonly #whep: WhepServer;

  constructor(options: SignallingOptions) {
    this.#options = options;
    this.#whep = new WhepServer(options);
  }

  request(request: IncomingMessage, response: ServerResponse, client: SignallingClient): void {
    const place = this.#place(request, response);
    if (place === null) return;
    if (place.direction === 'whep') this.#whep.handle(request, response, place, client.address);
    else {
      response.statusCode = 501;
      response.setHeader('Content-Type', 'text/plain');
      response.end('publishing over WHIP is not supported yet\n');
    }
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, client: SignallingClient): void {
    let place: RequestPlace;
    try {
      place = this.#placeOf(request);
    } catch {
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (connection) => this.#connected(connection, place, client));
  }

  /** Ends all connections. Idempotent. */
  close(): void {
    for (const connection of this.#sockets.clients) connection.terminate();
    this.#sockets.close();
  }

  #connected(socket: WebSocket, place: RequestPlace, client: SignallingClient): void {
    if (place.direction === 'send') {
      socket.on('error', () => socket.terminate());
      socket.send(JSON.stringify({ code: 501, error: 'Publishing over WebRTC is not supported yet' }));
      socket.close(CLOSE_UNSUPPORTED);
      return;
    }
    const { publisher, logger, forceRelay } = this.#options;
    const iceServers = forceRelay || place.transport === 'tcp' ? this.#options.iceServers : [];
    new PlaySignalling({ socket, publisher, target: place.target, client: client.address, iceServers, logger });
  }

  #place(request: IncomingMessage, response: ServerResponse): RequestPlace | null {
    try {
      return this.#placeOf(request);
    } catch (error) {
      if (!(error instanceof HttpFault)) throw error;
      response.statusCode = error.status;
      response.end(`${error.message}\n`);
      return null;
    }
  }

  #placeOf(request: IncomingMessage): RequestPlace {
    return placeOf(request.url ?? '/', request.headers.host ?? '', this.#options.virtualHostFor);
  }
}
