/** One HTTP/2 request and its answer. */
import { Readable } from 'node:stream';
import { HttpFault } from '../../../wire/http/http-fault.ts';
import type { AbortListener, AnswerSink, IncomingRequest, SentListener, TakenConnection } from '../answer-sink.ts';
import type { Image } from '../direct-sender.ts';

/** The part of a connection that its sinks use. */
export interface Http2Exchange {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localPort: number;
  readonly commonHeaders: string;
  /** Sends an answer; false: its stream has ended. */
  answer(stream: number, status: number, block: string, body: readonly Uint8Array[], headOnly: boolean): boolean;
  /** Bytes of the body were read. */
  consumed(stream: number, bytes: number): void;
  /** Drops the request. */
  drop(stream: number): void;
  /** The request was refused, or failed. */
  fault(): void;
  now(): number;
}

/** Ends with its stream: there is nothing to close. */
export class Http2Sink implements AnswerSink, IncomingRequest {
  readonly secure = true;
  readonly takesImages = false;
  readonly heldFor = 0;
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localPort: number;
  readonly method: string;
  readonly target: string;
  readonly #stream: number;
  /** `\nname: value\n…\n`, Latin-1. */
  readonly #head: string;
  readonly #whole: boolean;
  readonly #exchange: Http2Exchange;
  #waiting: AbortListener | null = null;
  #sent: SentListener | null = null;
  #answeredAt = 0;
  #closed = false;
  #body: Readable | null = null;
  /** Received parts of the body before the first read; limited by the flow-control window. */
  #chunks: (Buffer | null)[] = [];
  #unread = 0;

  /** `whole`: no body follows. */
  constructor(stream: number, head: string, whole: boolean, exchange: Http2Exchange) {
    this.#stream = stream;
    this.#head = head;
    this.#whole = whole;
    this.#exchange = exchange;
    ({ remoteAddress: this.remoteAddress, remotePort: this.remotePort, localPort: this.localPort } = exchange);
    this.method = this.header(':method') ?? '';
    const target = this.header(':path') ?? '';
    // A path in raw UTF-8 violates RFC 3986, but command line clients send it.
    this.target = /[\x80-\xff]/.test(target) ? Buffer.from(target, 'latin1').toString('utf8') : target;
  }

  /** Whether the answer was given. */
  get answered(): boolean {
    return this.#answeredAt !== 0;
  }

  get body(): Readable {
    if (this.#body === null) {
      const body = new Readable({ read: () => this.#grant() });
      body.on('error', () => {});
      this.#body = body;
      for (const chunk of this.#chunks.splice(0)) body.push(chunk);
      if (this.#whole) body.push(null);
    }
    return this.#body;
  }

  /** Throws `HttpFault` if the request is invalid. */
  check(): void {
    if (this.method !== 'GET' && this.method !== 'HEAD') return;
    if ((this.header('content-length') ?? '0') !== '0') throw new HttpFault(400, 'HTTP_BODY', `a body is not allowed with ${this.method}`);
  }

  header(name: string): string | undefined {
    const wanted = `\n${name === 'host' ? ':authority' : name}: `;
    let at = this.#head.indexOf(wanted);
    if (at < 0) return name === 'host' ? this.#lines('\nhost: ') : undefined;
    const end = this.#head.indexOf('\n', at + 1);
    const value = this.#head.slice(at + wanted.length, end);
    at = this.#head.indexOf(wanted, end);
    return at < 0 ? value : this.#lines(wanted);
  }

  answer(status: number, block: string, body: string | readonly Uint8Array[], listener: SentListener | null, _image?: Image | null): void {
    if (this.answered) throw new TypeError('this request has been answered already');
    this.#answeredAt = this.#exchange.now();
    this.#waiting = null;
    if (this.#closed) {
      listener?.sent(false);
      return;
    }
    this.#sent = listener;
    const chunks = typeof body === 'string' ? [Buffer.from(body, 'latin1')] : body;
    if (!this.#exchange.answer(this.#stream, status, block, chunks, this.method === 'HEAD')) this.closed(false);
  }

  keep(): void {
    // The handler answers everything.
  }

  lead(): null {
    return null;
  }

  wait(listener: AbortListener): void {
    if (!this.answered) this.#waiting = listener;
  }

  waitBriefly(listener: AbortListener): void {
    this.wait(listener);
  }

  fail(error: unknown): void {
    const fault = error instanceof HttpFault ? error : new HttpFault(500, 'HTTP_HANDLER', 'the server failed on this request');
    this.#exchange.fault();
    if (this.answered) this.#exchange.drop(this.#stream);
    else this.answer(fault.status, `${this.#exchange.commonHeaders}Content-Type: text/plain\r\n`, `${fault.message}\n`, null);
  }

  /** HTTP/2 requests share their connection with others, so it is never given away. */
  takeOver(): TakenConnection | null {
    return null;
  }

  /** The client has not received the answer within `limit` ms. */
  isSlow(now: number, limit: number): boolean {
    return this.answered && now - this.#answeredAt > limit;
  }

  /** Bytes of the body, or null at its end. */
  bodyCame(chunk: Buffer | null): void {
    if (chunk !== null) this.#unread += chunk.length;
    if (this.#body === null) this.#chunks.push(chunk);
    else this.#body.push(chunk);
  }

  /** The stream has ended; `complete`: the answer has been sent completely. Calls the listener that waits. Idempotent. */
  closed(complete: boolean): boolean {
    if (this.#closed) return true;
    this.#closed = true;
    const waiting = this.#waiting;
    this.#waiting = null;
    this.#body?.destroy();
    waiting?.aborted();
    this.#sent?.sent(complete);
    this.#sent = null;
    return complete;
  }

  #grant(): void {
    const bytes = this.#unread;
    this.#unread = 0;
    if (bytes > 0 && !this.#closed) this.#exchange.consumed(this.#stream, bytes);
  }

  /** All values of a header. */
  #lines(wanted: string): string | undefined {
    const values: string[] = [];
    for (let at = this.#head.indexOf(wanted); at >= 0; at = this.#head.indexOf(wanted, at + wanted.length)) {
      values.push(this.#head.slice(at + wanted.length, this.#head.indexOf('\n', at + 1)));
    }
    return values.length === 0 ? undefined : values.join(', ');
  }
}
