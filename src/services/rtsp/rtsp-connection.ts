/** One TCP connection to an RTSP server: requests and their answers, authentication, interleaved data. */
import net from 'node:net';
import { endAndCut } from '../../util/end-and-cut.ts';
import { messageOf } from '../../util/message-of.ts';
import { RtspAuthenticator } from '../../wire/rtsp/rtsp-auth.ts';
import {
  type InterleavedData,
  RtspReader,
  type RtspRequest,
  type RtspResponse,
  serializeRtspRequest,
} from '../../wire/rtsp/rtsp-message.ts';
import type { RtspUrl } from '../../wire/rtsp/rtsp-url.ts';

const USER_AGENT = 'Millrace';
const UNAUTHORIZED = 401;
/** Requests without an answer; a server gets one at a time but for keep-alives. */
const MAX_PENDING = 8;
/** Answers that a server leaves unread. */
const MAX_UNREAD_BYTES = 1_048_576;
/** For a last request to leave before the connection is cut. */
const LINGER_MS = 500;

/** The server refused a request; `message` tells which and how. */
export class RtspRefused extends Error {
  override readonly name = 'RtspRefused';
  readonly status: number;
  /** Where the server sends us; null when it does not. */
  readonly location: string | null;

  constructor(method: string, response: RtspResponse) {
    super(`${method} was answered with ${response.status} ${response.reason}`.trimEnd());
    this.status = response.status;
    const redirects = response.status >= 300 && response.status < 400;
    this.location = redirects ? (response.headers.get('location')?.[0] ?? null) : null;
  }
}

interface Pending {
  readonly resolve: (response: RtspResponse) => void;
  readonly reject: (error: Error) => void;
}

/** Owns its socket; its opener closes it. Requests may overlap, and are matched by CSeq (RFC 2326 §12.17). */
export class RtspConnection {
  readonly #socket: net.Socket;
  readonly #reader = new RtspReader();
  readonly #authenticator: RtspAuthenticator | null;
  readonly #pending = new Map<number, Pending>();
  #sequence = 0;
  #ended: string | null = null;
  #onData: (item: InterleavedData) => void = () => undefined;
  #onEnd: (why: string) => void = () => undefined;

  private constructor(socket: net.Socket, url: RtspUrl) {
    this.#socket = socket;
    this.#authenticator = url.credentials === null ? null : new RtspAuthenticator(url.credentials);
    socket.setNoDelay(true);
    socket.on('data', (piece) => this.#read(piece));
    socket.on('error', (error) => this.#end(error.message));
    socket.on('close', () => this.#end('the server closed the connection'));
  }

  /** Connects. Rejects when the server cannot be reached or `signal` is aborted. */
  static open(url: RtspUrl, signal: AbortSignal): Promise<RtspConnection> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const socket = net.connect({ host: url.host, port: url.port });
      const abort = (): void => {
        socket.destroy();
        reject(new Error('the connection was given up'));
      };
      signal.addEventListener('abort', abort, { once: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        signal.removeEventListener('abort', abort);
        socket.removeListener('error', reject);
        resolve(new RtspConnection(socket, url));
      });
    });
  }

  /** Address of the server. */
  get remoteAddress(): string {
    return this.#socket.remoteAddress ?? '';
  }

  get localAddress(): string {
    return this.#socket.localAddress ?? '';
  }

  /** Interleaved data goes to `onData`; `onEnd` is called once, when the server has gone. */
  listen(onData: (item: InterleavedData) => void, onEnd: (why: string) => void): void {
    this.#onData = onData;
    this.#onEnd = onEnd;
    if (this.#ended !== null) onEnd(this.#ended);
  }

  /** Resolves with the answer, whatever its status; a challenge is answered first. Rejects when the connection ends or `signal` is aborted. */
  async exchange(method: string, uri: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<RtspResponse> {
    const response = await this.#send(method, uri, headers, signal);
    if (response.status !== UNAUTHORIZED || this.#authenticator === null) return response;
    if (!this.#authenticator.accept(response.headers.get('www-authenticate') ?? [])) return response;
    return await this.#send(method, uri, headers, signal);
  }

  /** Resolves with the answer of status 200. Rejects with `RtspRefused` for any other. */
  async request(method: string, uri: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<RtspResponse> {
    const response = await this.exchange(method, uri, headers, signal);
    if (response.status !== 200) throw new RtspRefused(method, response);
    return response;
  }

  /** Sends a request without waiting for its answer. */
  post(method: string, uri: string, headers: Readonly<Record<string, string>>): void {
    if (this.#ended === null) this.#write(method, uri, headers);
  }

  /** Sends a packet on an interleaved channel. */
  sendData(channel: number, data: Uint8Array): void {
    if (this.#ended !== null || this.#socket.writableNeedDrain) return;
    const frame = Buffer.alloc(4 + data.length);
    frame[0] = 0x24;
    frame[1] = channel;
    frame.writeUInt16BE(data.length, 2);
    frame.set(data, 4);
    this.#socket.write(frame);
  }

  /** Stops reading: the server finds its window full. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Ends the connection once the sent data has left. Idempotent; `onEnd` is not called. */
  close(): void {
    this.#onEnd = () => undefined;
    this.#onData = () => undefined;
    this.#end('the connection was closed');
  }

  #send(method: string, uri: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<RtspResponse> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#ended !== null) throw new Error(this.#ended);
      if (this.#pending.size >= MAX_PENDING) throw new Error('the server does not answer');
      const sequence = this.#write(method, uri, headers);
      const abort = (): void => {
        this.#pending.delete(sequence);
        reject(new Error(`${method} was not answered in time`));
      };
      signal.addEventListener('abort', abort, { once: true });
      const settled = (): void => signal.removeEventListener('abort', abort);
      this.#pending.set(sequence, {
        resolve: (response) => {
          settled();
          resolve(response);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      });
    });
  }

  /** Returns the sequence number of the request. */
  #write(method: string, uri: string, headers: Readonly<Record<string, string>>): number {
    this.#sequence += 1;
    const authorization = this.#authenticator?.header(method, uri) ?? null;
    this.#socket.write(
      serializeRtspRequest(method, uri, {
        CSeq: String(this.#sequence),
        'User-Agent': USER_AGENT,
        ...(authorization !== null && { Authorization: authorization }),
        ...headers,
      }),
    );
    return this.#sequence;
  }

  #read(piece: Uint8Array): void {
    // Data that arrives after the last request is not read, and data that broke the reader must not be kept and read again.
    if (this.#ended !== null) return;
    try {
      this.#reader.push(piece, (item) => {
        if (item.kind === 'data') this.#onData(item);
        else if (item.kind === 'response') this.#answered(item);
        else this.#asked(item);
      });
    } catch (error) {
      this.#end(messageOf(error));
    }
  }

  #answered(response: RtspResponse): void {
    const sequence = Number(response.headers.get('cseq')?.[0]);
    const pending = this.#pending.get(sequence);
    this.#pending.delete(sequence);
    pending?.resolve(response);
  }

  /** Servers ask whether we are there, or send us away. */
  #asked({ method, headers }: RtspRequest): void {
    if (this.#ended !== null) return;
    const sequence = headers.get('cseq')?.[0] ?? '0';
    const known = method === 'OPTIONS' || method === 'GET_PARAMETER' || method === 'SET_PARAMETER' || method === 'TEARDOWN';
    const status = known ? '200 OK' : '501 Not Implemented';
    this.#socket.write(`RTSP/1.0 ${status}\r\nCSeq: ${sequence.replace(/[^\d]/g, '')}\r\n\r\n`);
    if (method === 'TEARDOWN' || method === 'REDIRECT') this.#end(`the server sent ${method}`);
    else if (this.#socket.writableLength > MAX_UNREAD_BYTES) this.#end('the server asks and does not read the answers');
  }

  #end(why: string): void {
    if (this.#ended !== null) return;
    this.#ended = why;
    for (const { reject } of this.#pending.values()) reject(new Error(why));
    this.#pending.clear();
    endAndCut(this.#socket, null, LINGER_MS);
    this.#onEnd(why);
  }
}
