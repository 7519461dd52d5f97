/** The main thread's end of `MainThreadRelay`: an HTTP server on a private Unix socket. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import type { Logger } from '../../util/logger.ts';
import { createServer as createHttpServer } from '../../util/node-http.ts';
import { scaleTimeouts, type TimeoutScale } from '../../util/timeout-scale.ts';
import type { RelayedPeer } from '../relayed-peer.ts';
import { FOLDER_PREFIX, SOCKET_NAME } from '../stale-folders.ts';

const MAX_PREAMBLE = 1024;
const NOBODY: RelayedPeer = { address: '', port: 0, asked: { secure: false, port: 0 }, end: { address: '', port: 0 }, realIp: '' };
/** Node.js checks timeouts only in listening servers, so this one checks its own. All in milliseconds. */
const TIMES = {
  preamble: 5000,
  /** From the start to the end of the answer, or to the upgrade: the handler has shorter limits for body and answer. */
  exchange: 45_000,
  /** Time to send the end of the answer. */
  linger: 2000,
};

/** The handler. It closes the sockets that it is given. */
export interface MainThreadHandler {
  request(request: IncomingMessage, response: ServerResponse, client: RelayedPeer): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, client: RelayedPeer): void;
}

/** `listen` makes the socket in a folder that only this user may enter; the owner calls `close`, which removes both. */
export class MainThreadServer {
  readonly #folder: string;
  readonly #path: string;
  readonly #server: Server;
  readonly #http: HttpServer;
  readonly #peers = new WeakMap<object, RelayedPeer>();
  readonly #sockets = new Set<Socket>();
  readonly #times: typeof TIMES;
  readonly #deadlines = new WeakMap<object, NodeJS.Timeout>();

  /** An exception of the handler ends only its request. */
  constructor(handler: MainThreadHandler, logger: Logger, timeoutScale: TimeoutScale = 1) {
    this.#times = scaleTimeouts(TIMES, timeoutScale);
    // Only this user may enter the folder, so no other user can pose as a delivery thread.
    this.#folder = mkdtempSync(path.join(tmpdir(), FOLDER_PREFIX));
    this.#path = path.join(this.#folder, SOCKET_NAME);
    this.#http = createHttpServer((request, response) => {
      // The connection would be reused for delivery, which this server does not do.
      response.setHeader('Connection', 'close');
      const { socket } = request;
      response.once('close', () => this.#within(socket, this.#times.linger));
      try {
        handler.request(request, response, this.#peerOf(socket));
      } catch (error) {
        logger.limited.error({ err: error, target: pathOf(request) }, 'a signalling request failed inside the server');
        fail(response);
      }
    });
    this.#http.on('upgrade', (request, socket, head) => {
      // The handler owns the socket from now on; if it refuses, it ends the socket.
      this.#stopWaiting(socket);
      try {
        handler.upgrade(request, socket, head, this.#peerOf(request.socket));
        if (socket.writableEnded) this.#within(socket, this.#times.linger);
      } catch (error) {
        logger.limited.error({ err: error, target: pathOf(request) }, 'a signalling connection failed inside the server');
        socket.destroy();
      }
    });
    this.#http.on('clientError', (_error, socket) => socket.destroy());
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
    // `accept` may fail for lack of descriptors or memory, and works again later.
    this.#server.on('error', (error) => logger.limited.error({ err: error }, 'the socket for signalling failed'));
  }

  /** The socket for the delivery threads. */
  get path(): string {
    return this.#path;
  }

  listen(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject);
    this.#server.listen(this.#path, () => {
      this.#server.off('error', reject);
      resolve();
    });
    return promise;
  }

  /** Ends connections and removes the socket. Idempotent. */
  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #peerOf(socket: object): RelayedPeer {
    return this.#peers.get(socket) ?? NOBODY;
  }

  /** Closes the connection after `ms`; replaces its previous limit. */
  #within(socket: Duplex, ms: number): void {
    this.#stopWaiting(socket);
    if (!socket.destroyed)
      this.#deadlines.set(
        socket,
        setTimeout(() => socket.destroy(), ms),
      );
  }

  #stopWaiting(socket: Duplex): void {
    clearTimeout(this.#deadlines.get(socket));
    this.#deadlines.delete(socket);
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => {
      this.#stopWaiting(socket);
      this.#sockets.delete(socket);
    });
    socket.on('error', () => socket.destroy());
    this.#within(socket, this.#times.preamble);
    let held = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      held = Buffer.concat([held, chunk]);
      const end = held.indexOf('\n');
      if (end < 0) {
        if (held.length > MAX_PREAMBLE) socket.destroy();
        return;
      }
      this.#within(socket, this.#times.exchange);
      socket.off('data', onData);
      socket.pause();
      const peer = readPeer(held.subarray(0, end).toString());
      if (peer === null) {
        socket.destroy();
        return;
      }
      this.#peers.set(socket, peer);
      socket.unshift(held.subarray(end + 1));
      this.#http.emit('connection', socket);
      socket.resume();
    };
    socket.on('data', onData);
  }
}

/** For logs: keys and signatures are in the query. */
function pathOf({ url = '' }: IncomingMessage): string | undefined {
  return url.split('?', 1)[0];
}

/** Answers an unanswered request; a started answer is cut off. */
function fail(response: ServerResponse): void {
  if (response.headersSent) response.destroy();
  else {
    response.statusCode = 500;
    response.end('the server failed on this request\n');
  }
}

function readPeer(line: string): RelayedPeer | null {
  try {
    return JSON.parse(line) as RelayedPeer;
  } catch {
    return null;
  }
}
