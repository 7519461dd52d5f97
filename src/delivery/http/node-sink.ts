/** Requests of Node's own HTTP/1.1 and HTTP/2 servers (used under TLS) for our handlers. */
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Readable } from 'node:stream';
import type { ConnectionGate } from '../../transport/proxy/connection-gate.ts';
import { HttpFault } from '../../wire/http/http-fault.ts';
import {
  type AbortListener,
  type AnswerSink,
  bodyLength,
  type HttpCounters,
  type IncomingRequest,
  type RequestHandler,
  type SentListener,
  type TakenConnection,
} from './answer-sink.ts';

/** Dependencies shared by all requests of a listener. */
export interface NodeSinkContext {
  readonly counters: HttpCounters;
  /** Headers of answers made without the handler, complete lines. */
  readonly commonHeaders: string;
  readonly gate: ConnectionGate;
  /** Unfinished requests. */
  readonly open: Set<NodeSink>;
}

/** One request and its answer. Ends with either: there is nothing to close. */
export class NodeSink implements AnswerSink, IncomingRequest {
  readonly secure = true;
  readonly takesImages = false;
  readonly heldFor = 0;
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localPort: number;
  readonly method: string;
  readonly target: string;
  readonly #request: Http2ServerRequest;
  readonly #response: Http2ServerResponse;
  readonly #counters: HttpCounters;
  readonly #context: NodeSinkContext;
  #waiting: AbortListener | null = null;
  #sent: SentListener | null = null;
  #answered = false;
  #answeredAt = 0;
  #closed = false;

  constructor(request: Http2ServerRequest, response: Http2ServerResponse, context: NodeSinkContext) {
    this.#request = request;
    this.#response = response;
    this.#context = context;
    this.#counters = context.counters;
    this.method = request.method;
    this.target = request.url;
    ({ address: this.remoteAddress, port: this.remotePort } = context.gate.clientOf(request.socket));
    this.localPort = request.socket.localPort ?? 0;
    context.open.add(this);
    response.on('close', () => {
      try {
        this.#onClose();
      } catch {
        // The request has ended; its owner reports the fault.
        this.#counters.faults += 1;
      }
    });
    response.on('error', () => {});
    request.on('error', () => {});
  }

  /** Passes the request to `handler`. */
  serve(handler: RequestHandler): void {
    try {
      this.#checkBody();
      handler.handle(this, this);
    } catch (error) {
      this.fail(error);
    }
  }

  waitBriefly(listener: AbortListener): void {
    this.wait(listener);
  }

  fail(error: unknown): void {
    const fault = error instanceof HttpFault ? error : new HttpFault(500, 'HTTP_HANDLER', 'the server failed on this request');
    this.#counters.faults += 1;
    if (this.#answered) this.#response.destroy();
    else this.answer(fault.status, `${this.#context.commonHeaders}Content-Type: text/plain\r\n`, `${fault.message}\n`, null);
  }

  get body(): Readable {
    return this.#request;
  }

  header(name: string): string | undefined {
    if (name === 'host' && this.#request.httpVersionMajor === 2) return this.#request.authority;
    const value = this.#request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  }

  answer(status: number, block: string, body: string | readonly Uint8Array[], listener: SentListener | null): void {
    if (this.#answered) throw new TypeError('this request has been answered already');
    this.#answered = true;
    this.#answeredAt = performance.now();
    this.#waiting = null;
    if (this.#closed) {
      listener?.sent(false);
      return;
    }
    this.#sent = listener;
    const response = this.#response;
    const chunks = typeof body === 'string' ? [Buffer.from(body, 'latin1')] : body;
    const length = bodyLength(chunks);
    for (const [name, value] of splitHeaderLines(block)) response.setHeader(name, value);
    response.setHeader('Content-Length', length);
    response.writeHead(status);
    const group = Math.floor(status / 100);
    this.#counters.statuses[group] = (this.#counters.statuses[group] ?? 0) + 1;
    if (this.method !== 'HEAD') {
      this.#counters.bytesSent += length;
      for (const chunk of chunks) if (chunk.length > 0) response.write(chunk);
    }
    response.end();
  }

  keep(): void {
    // The handler answers everything.
  }

  lead(): null {
    return null;
  }

  wait(listener: AbortListener): void {
    if (!this.#answered) this.#waiting = listener;
  }

  /** Requests under TLS share their connection with others, so it is never given away. */
  takeOver(): TakenConnection | null {
    return null;
  }

  /** Drops the answer if the client needs more than `limit` ms for it. */
  sweep(now: number, limit: number): void {
    if (this.#answeredAt === 0 || now - this.#answeredAt <= limit) return;
    this.#counters.timeouts += 1;
    if (this.#request.httpVersionMajor === 2) this.#response.stream.destroy();
    else this.#request.socket.destroy();
  }

  #checkBody(): void {
    const { headers } = this.#request;
    const length = headers['content-length'];
    if ((this.method === 'GET' || this.method === 'HEAD') && length !== undefined && length !== '0') {
      throw new HttpFault(400, 'HTTP_BODY', `a body is not allowed with ${this.method}`);
    }
  }

  #onClose(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#context.open.delete(this);
    const complete = this.#answered && this.#response.writableEnded && this.#response.finished;
    if (!complete) this.#counters.aborts += 1;
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.aborted();
    this.#sent?.sent(complete);
    this.#sent = null;
  }
}

/** Splits complete header lines: `A: b\r\nC: d\r\n` → pairs. */
function splitHeaderLines(block: string): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (const line of block.split('\r\n')) {
    const colon = line.indexOf(': ');
    if (colon > 0) pairs.push([line.slice(0, colon), line.slice(colon + 2)]);
  }
  return pairs;
}
