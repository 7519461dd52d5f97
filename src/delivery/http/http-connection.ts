/** One HTTP/1.x connection: emits requests one after the other and writes their answers. */

import { type Framing, readFraming } from '../../wire/http/framing.ts';
import { HttpFault } from '../../wire/http/http-fault.ts';
import { RequestReader } from '../../wire/http/request-reader.ts';
import type { ClientEnd } from '../../wire/proxy/proxy-header.ts';
import type { HttpCounters } from '../http-counters.ts';
import type { HttpLimits } from '../http-limits.ts';
import type { Followers, KeptAnswer, LedRequest } from './answer-link.ts';
import {
  type AbortListener,
  type AnswerSink,
  bodyLength,
  type RequestHandler,
  type SentListener,
  type TakenConnection,
} from './answer-sink.ts';
import type { ByteTransport, TransportEvents } from './byte-transport.ts';
import type { MemoryFile } from './direct-sender.ts';
import { type DateLine, statusLine } from './status-line.ts';

const NOTHING: readonly Uint8Array[] = [];

/** Dependencies shared by all connections of a listener. */
export interface HttpConnectionContext {
  readonly handler: RequestHandler;
  readonly limits: HttpLimits;
  readonly date: DateLine;
  readonly counters: HttpCounters;
  /** Headers of answers made by the connection itself, complete lines. */
  readonly commonHeaders: string;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Called if a client starts TLS on a plain port. */
  readonly spokeTls: (connection: HttpConnection) => void;
  /** The connection has ended. */
  readonly closed: (connection: HttpConnection, reason: string) => void;
}

/**
 * Parses requests and writes answers in order. The next request is parsed when the previous one is answered
 * and the socket has room, so a client that pipelines or does not read delays only itself.
 */
export class HttpConnection implements AnswerSink {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localPort: number;
  readonly secure: boolean;
  readonly openedAt: number;
  readonly #transport: ByteTransport;
  readonly #context: HttpConnectionContext;
  readonly #reader: RequestReader;
  /** Listeners of answers in the socket's queue, oldest first. */
  readonly #sending: (SentListener | null)[] = [];
  readonly #events: TransportEvents = {
    data: this.#guarded((chunk: Buffer) => this.#onData(chunk)),
    drain: this.#guarded(() => this.#pump()),
    written: this.#guarded((complete: boolean) => this.#onWritten(complete)),
    end: this.#guarded(() => this.#onEnd()),
    timeout: this.#guarded(() => this.#onTimeout()),
    failed: (reason): void => this.#because(reason),
    closed: this.#guarded(() => this.#onClose()),
  };
  #waiting: AbortListener | null = null;
  /** A request was passed to the handler and is not answered yet. */
  #busy = false;
  /** Its answer comes within a moment (`waitBriefly`). */
  #brief = false;
  #headOnly = false;
  #pumping = false;
  /** No further request will be read: an answer had `Connection: close`, or the peer violated the protocol. */
  #closing = false;
  #framing: Framing = { persistent: true, body: false };
  #legacy = false;
  #peerEnded = false;
  #headSince = 0;
  /** Start of the time without request and answer. */
  #idleSince: number;
  #sendingSince = 0;
  #closingSince = 0;
  #requests = 0;
  #reason = '';

  /** Takes ownership of the transport. */
  constructor(transport: ByteTransport, context: HttpConnectionContext, client: ClientEnd) {
    this.#transport = transport;
    this.#context = context;
    this.#reader = new RequestReader(context.limits);
    this.secure = transport.secure;
    this.remoteAddress = client.address;
    this.remotePort = client.port;
    this.localPort = transport.localPort;
    this.openedAt = context.now();
    this.#idleSince = this.openedAt;
    context.counters.opened += 1;
    transport.setTimeout(context.limits.idleTime);
    transport.open(this.#events);
  }

  /** Requests received so far. */
  get requests(): number {
    return this.#requests + (this.#transport.answers?.requests ?? 0);
  }

  get takesMemoryFiles(): boolean {
    return this.#transport.takesMemoryFiles;
  }

  answer(
    status: number,
    block: string,
    body: string | readonly Uint8Array[],
    listener: SentListener | null,
    memoryFile: MemoryFile | null = null,
  ): void {
    if (!this.#busy) throw new TypeError('this request has been answered already');
    // Bytes that bypass Node.js do not reset its timer, and the request may have arrived long ago.
    if (this.#waiting !== null) this.#transport.setTimeout(this.#context.limits.idleTime);
    this.#busy = false;
    this.#brief = false;
    this.#waiting = null;
    if (!this.#framing.persistent) this.#closing = true;
    this.#write(status, block, body, listener, memoryFile);
    if (this.#closing) this.#finish();
    else if (!this.#pumping) this.#pump();
  }

  get heldFor(): number {
    return this.#transport.answers?.heldFor ?? 0;
  }

  keep(answer: KeptAnswer): void {
    if (this.#isUsual()) this.#transport.answers?.keep(answer);
  }

  lead(request: LedRequest): Followers | null {
    return this.#isUsual() ? (this.#transport.answers?.lead(request) ?? null) : null;
  }

  wait(listener: AbortListener): void {
    if (!this.#busy) return;
    this.#waiting = listener;
    this.#brief = false;
    if (this.#peerEnded) this.#transport.destroy();
  }

  waitBriefly(listener: AbortListener): void {
    if (!this.#busy) return;
    this.#waiting = listener;
    this.#brief = true;
  }

  /** The peer violated the protocol, or the handler threw: then the answer may be half written. */
  fail(error: unknown): void {
    if (error instanceof HttpFault) this.#refuse(error);
    else {
      this.#because(`the server failed on a request: ${String(error)}`);
      if (this.#busy) this.#refuse(new HttpFault(500, 'HTTP_HANDLER', 'the server failed on this request'));
      else this.#transport.destroy();
    }
  }

  takeOver(): TakenConnection | null {
    // Answers in the queue have listeners that must be called.
    if (!this.#busy || !this.#pumping || this.#sending.length > 0) return null;
    const socket = this.#transport.release();
    this.#because('handed over');
    this.#onClose();
    return { socket, bytes: this.#reader.takeBack() };
  }

  /** Checks the deadlines of this connection. */
  sweep(now: number): void {
    const { limits, counters } = this.#context;
    if (this.#closingSince !== 0 && this.#sending.length === 0 && now - this.#closingSince > limits.lingerTime) {
      this.#because('linger time over');
      this.#transport.destroy();
    } else if (this.#sendingSince !== 0 && now - this.#sendingSince > limits.sendTime) {
      counters.timeouts += 1;
      this.#because('the client took an answer too slowly');
      this.#transport.destroy();
    } else if (this.#headSince !== 0 && !this.#busy && !this.#closing && now - this.#headSince > limits.headerTime) {
      counters.timeouts += 1;
      this.#refuse(new HttpFault(408, 'HTTP_HEADER_TIME', `the request header did not arrive within ${limits.headerTime} ms`));
    } else if (this.#isIdle(now)) {
      counters.timeouts += 1;
      this.destroy(this.#requests === 0 ? 'nothing was asked' : 'idle');
    }
  }

  /** Closes after the current answer; at once if there is none. Idempotent. */
  close(reason: string): void {
    // A request that waits elsewhere is in progress, too.
    this.#transport.answers?.release();
    this.#because(reason);
    if (this.#busy) this.#framing = { persistent: false, body: false };
    else if (!this.#closing) {
      this.#closing = true;
      this.#finish();
    }
  }

  /** Closes the connection at once. */
  destroy(reason: string): void {
    this.#because(reason);
    this.#transport.destroy();
  }

  /** The answer may be the same for all equal requests. */
  #isUsual(): boolean {
    return this.#framing.persistent && !this.#legacy && !this.#headOnly && !this.#closing;
  }

  /** The socket's own timer counts bytes, including those of empty lines before a request. */
  #isIdle(now: number): boolean {
    if (this.#busy || this.#closing || this.#headSince !== 0 || this.#sending.length > 0) return false;
    const { idleTime, headerTime } = this.#context.limits;
    return now - this.#idleSince > (this.#requests === 0 ? headerTime : idleTime) && !this.#isServed(idleTime);
  }

  /** The addon has answered a request within this time. */
  #isServed(time: number): boolean {
    const idle = this.#transport.answers?.idle ?? -1;
    return idle >= 0 && idle <= time;
  }

  /** An exception of an answer's listener or a handler ends this connection, not the thread. */
  #guarded<Given extends readonly unknown[]>(action: (...given: Given) => void): (...given: Given) => void {
    return (...given) => {
      try {
        action(...given);
      } catch (error) {
        this.#because(`the server failed on this connection: ${String(error)}`);
        this.#context.counters.faults += 1;
        this.#transport.destroy();
      }
    };
  }

  #onData(chunk: Buffer): void {
    if (this.#closing) return;
    this.#reader.push(chunk);
    this.#pump();
    if (!this.#closing && this.#reader.buffered > this.#context.limits.pipelinedBytes) this.#transport.pause();
  }

  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    try {
      while (!this.#busy && !this.#closing && !this.#transport.isFull && !this.#transport.destroyed) {
        this.#headOnly = false;
        const head = this.#reader.next();
        if (head === null) break;
        this.#headSince = 0;
        this.#requests += 1;
        this.#context.counters.requests += 1;
        this.#headOnly = head.method === 'HEAD';
        this.#legacy = head.minorVersion === 0;
        this.#framing = readFraming(head);
        if (this.#framing.body && (this.#headOnly || head.method === 'GET')) {
          throw new HttpFault(400, 'HTTP_BODY', `a body is not allowed with ${head.method}`);
        }
        this.#busy = true;
        this.#context.handler.handle(head, this);
      }
    } catch (error) {
      this.fail(error);
    } finally {
      this.#pumping = false;
    }
    this.#afterPump();
  }

  #afterPump(): void {
    if (this.#closing || this.#transport.destroyed) return;
    const { limits, now } = this.#context;
    const buffered = this.#reader.buffered;
    if (this.#busy || buffered === 0) this.#headSince = 0;
    else if (this.#headSince === 0) this.#headSince = now();
    if (this.#transport.isPaused && buffered <= limits.pipelinedBytes) this.#transport.resume();
    if (this.#peerEnded && !this.#busy && !this.#transport.isFull) {
      this.#closing = true;
      this.#finish();
      return;
    }
    this.#rest();
  }

  #rest(): void {
    if (!this.#busy && !this.#closing && !this.#peerEnded && this.#sending.length === 0 && this.#reader.buffered === 0)
      this.#transport.rest();
  }

  #write(
    status: number,
    block: string,
    body: string | readonly Uint8Array[],
    listener: SentListener | null,
    memoryFile: MemoryFile | null,
  ): void {
    const { counters, date, now } = this.#context;
    const length = typeof body === 'string' ? body.length : bodyLength(body);
    let head = `${statusLine(status)}${date.line}${block}Content-Length: ${length}\r\n`;
    if (this.#closing) head += 'Connection: close\r\n\r\n';
    else head += this.#legacy ? 'Connection: keep-alive\r\n\r\n' : '\r\n';
    const group = Math.floor(status / 100);
    counters.statuses[group] = (counters.statuses[group] ?? 0) + 1;
    counters.bytesSent += head.length + (this.#headOnly ? 0 : length);
    const text = typeof body === 'string' && !this.#headOnly ? head + body : head;
    const chunks = typeof body === 'string' || this.#headOnly ? NOTHING : body;
    const sent = this.#transport.send(text, chunks, memoryFile);
    this.#idleSince = now();
    if (sent) {
      listener?.sent(true);
      return;
    }
    if (this.#sending.length === 0) this.#sendingSince = now();
    this.#sending.push(listener);
  }

  #onWritten(complete: boolean): void {
    const listener = this.#sending.shift();
    const now = this.#context.now();
    this.#sendingSince = this.#sending.length === 0 ? 0 : now;
    this.#idleSince = now;
    listener?.sent(complete);
    this.#rest();
  }

  /** Answers an invalid request with a text, and closes. */
  #refuse(fault: HttpFault): void {
    this.#context.counters.faults += 1;
    this.#because(fault.message);
    if (fault.code === 'HTTP_TLS') this.#context.spokeTls(this);
    this.#busy = false;
    this.#brief = false;
    this.#waiting = null;
    this.#closing = true;
    const block = `${this.#context.commonHeaders}Content-Type: text/plain\r\n`;
    this.#write(fault.status, block, `${fault.message}\n`, null, null);
    this.#finish();
  }

  /** Half-closes after the last byte; then the peer has a moment to close its side. */
  #finish(): void {
    this.#closingSince = this.#context.now();
    this.#transport.end();
    // Received bytes are discarded: closing with unread bytes would reset the connection and lose the answer.
    this.#transport.resume();
  }

  #onEnd(): void {
    this.#peerEnded = true;
    this.#because('the client closed');
    if (this.#busy && !this.#brief) {
      // A client that half-closes does not wait for a slow answer; it has usually left.
      this.#transport.destroy();
    } else if (this.#closing) this.#transport.end();
    else this.#pump();
  }

  #onTimeout(): void {
    // A request may wait for media on the server; its view has its own deadline.
    if (this.#busy) return;
    const { idleTime } = this.#context.limits;
    if (this.#isServed(idleTime)) {
      this.#transport.setTimeout(idleTime);
      return;
    }
    this.#context.counters.timeouts += 1;
    this.destroy(this.#sending.length > 0 ? 'the client does not take its answer' : 'idle');
  }

  #onClose(): void {
    const { counters } = this.#context;
    counters.closed += 1;
    this.#closing = true;
    this.#busy = false;
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting !== null || this.#sending.length > 0) counters.aborts += 1;
    try {
      waiting?.aborted();
      for (const listener of this.#sending.splice(0)) listener?.sent(false);
    } finally {
      this.#context.closed(this, this.#reason === '' ? 'closed' : this.#reason);
    }
  }

  /** Keeps the first reason: later ones are its consequences. */
  #because(reason: string): void {
    if (this.#reason === '') this.#reason = reason;
  }
}
