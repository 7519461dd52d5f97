/** Requests of Node's own HTTP/1.1 and HTTP/2 servers (used under TLS) for our handlers. */
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Readable } from 'node:stream';
import type { ConnectionGate } from '../../transport/proxy/connection-gate.ts';
import type { HttpCounters } from '../http-counters.ts';
import { bodyLength, type RequestHandler } from './answer-sink.ts';
import { SecureSink } from './secure-sink.ts';

/** Dependencies shared by all requests of a listener. */
export interface NodeSinkContext {
  readonly counters: HttpCounters;
  /** Headers of answers made without the handler, complete lines. */
  readonly commonHeaders: string;
  readonly gate: ConnectionGate;
  /** Unfinished requests. */
  readonly open: Set<NodeSink>;
}

/** A request of Node's own servers and its answer. */
export class NodeSink extends SecureSink {
  override readonly remoteAddress: string;
  override readonly remotePort: number;
  override readonly localPort: number;
  override readonly method: string;
  override readonly target: string;
  readonly #request: Http2ServerRequest;
  readonly #response: Http2ServerResponse;
  readonly #context: NodeSinkContext;

  constructor(request: Http2ServerRequest, response: Http2ServerResponse, context: NodeSinkContext) {
    super(context.commonHeaders);
    this.#request = request;
    this.#response = response;
    this.#context = context;
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
        this.countFault();
      }
    });
    response.on('error', () => {});
    request.on('error', () => {});
  }

  /** Passes the request to `handler`. */
  serve(handler: RequestHandler): void {
    try {
      this.check();
      handler.handle(this, this);
    } catch (error) {
      this.fail(error);
    }
  }

  override get body(): Readable {
    return this.#request;
  }

  override header(name: string): string | undefined {
    if (name === 'host' && this.#request.httpVersionMajor === 2) return this.#request.authority;
    const value = this.#request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  }

  /** Drops the answer if the client needs more than `limit` ms for it. */
  sweep(now: number, limit: number): void {
    if (!this.isSlow(now, limit)) return;
    this.#context.counters.timeouts += 1;
    if (this.#request.httpVersionMajor === 2) this.#response.stream.destroy();
    else this.#request.socket.destroy();
  }

  protected override send(status: number, block: string, chunks: readonly Uint8Array[]): void {
    const response = this.#response;
    const { counters } = this.#context;
    const length = bodyLength(chunks);
    for (const [name, value] of splitHeaderLines(block)) response.setHeader(name, value);
    response.setHeader('Content-Length', length);
    response.writeHead(status);
    const group = Math.floor(status / 100);
    counters.statuses[group] = (counters.statuses[group] ?? 0) + 1;
    if (this.method !== 'HEAD') {
      counters.bytesSent += length;
      for (const chunk of chunks) if (chunk.length > 0) response.write(chunk);
    }
    response.end();
  }

  protected override drop(): void {
    this.#response.destroy();
  }

  protected override countFault(): void {
    this.#context.counters.faults += 1;
  }

  protected override now(): number {
    return performance.now();
  }

  #onClose(): void {
    if (this.ended) return;
    this.#context.open.delete(this);
    const complete = this.answered && this.#response.writableEnded && this.#response.finished;
    if (!complete) this.#context.counters.aborts += 1;
    this.end(complete);
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
