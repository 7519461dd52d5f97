/** A signalling client over TLS that trusts exactly one certificate: HTTP requests and WebSockets. */
import { request as httpsRequest } from 'node:https';
import { WebSocket } from 'ws';
import { until } from './poll.ts';

export interface TlsAnswer {
  readonly status: number;
  readonly location: string;
  readonly body: string;
}

export interface SignalledOffer {
  readonly id: number;
  readonly sdp: string;
  readonly candidates: readonly string[];
}

/** One connection of the WebSocket protocol. */
export class TlsSignalling {
  readonly #socket: WebSocket;
  readonly #heard: { id?: number; code?: number; sdp?: { sdp: string }; candidates?: { candidate: string }[] }[] = [];
  #id = 0;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data) => this.#heard.push(JSON.parse(data.toString())));
    socket.on('error', () => undefined);
  }

  /** Throws if the server refuses. */
  async offer(): Promise<SignalledOffer> {
    this.#socket.send(JSON.stringify({ command: 'request_offer' }));
    const { id = 0, code, sdp, candidates = [] } = await until('an offer', () => this.#heard[0] ?? null, { deadlineMs: 5000 });
    if (code !== 200) throw new Error(`refused with ${code}`);
    this.#id = id;
    return { id, sdp: sdp?.sdp ?? '', candidates: candidates.map(({ candidate }) => candidate) };
  }

  answer(sdp: string): void {
    this.#socket.send(JSON.stringify({ command: 'answer', id: this.#id, peer_id: 0, sdp: { type: 'answer', sdp } }));
  }
}

/** Connects to `localhost`. Its creator closes it. */
export class TlsClient {
  readonly #port: number;
  readonly #ca: string;
  readonly #sockets: WebSocket[] = [];

  constructor(port: number, ca: string) {
    this.#port = port;
    this.#ca = ca;
  }

  async request(method: string, path: string, body = ''): Promise<TlsAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<TlsAnswer>();
    const options = { method, path, host: 'localhost', family: 4, port: this.#port, ca: this.#ca };
    const request = httpsRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, location: response.headers.location ?? '', body: Buffer.concat(chunks).toString() });
      });
    });
    request.on('error', reject);
    request.end(body);
    return await promise;
  }

  async socket(path: string): Promise<TlsSignalling> {
    const socket = new WebSocket(`wss://localhost:${this.#port}${path}`, { family: 4, ca: this.#ca });
    this.#sockets.push(socket);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.once('open', resolve).once('error', reject);
    await promise;
    return new TlsSignalling(socket);
  }

  /** A player's connection with its offer; null while the stream does not exist. */
  async playing(path: string): Promise<{ socket: TlsSignalling; offer: SignalledOffer } | null> {
    const socket = await this.socket(path);
    const offer = await socket.offer().catch(() => null);
    return offer === null ? null : { socket, offer };
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate();
  }
}
