import type { Readable } from 'node:stream';
import { HttpFault } from '../../wire/http/http-fault.ts';
import type { AbortListener, AnswerSink, IncomingRequest, SentListener, TakenConnection } from './answer-sink.ts';

/** A request under TLS: answered once, and its listeners are called once. Other requests may share its connection. Nothing to close. */
export abstract class SecureSink implements AnswerSink, IncomingRequest {
  readonly secure = true;
  readonly takesMemoryFiles = false;
  readonly heldFor = 0;
  abstract readonly remoteAddress: string;
  abstract readonly remotePort: number;
  abstract readonly localPort: number;
  abstract readonly method: string;
  abstract readonly target: string;
  abstract readonly body: Readable;
  readonly #commonHeaders: string;
  #waiting: AbortListener | null = null;
  #sent: SentListener | null = null;
  #answered = false;
  #answeredAt = 0;
  #ended = false;

  /** `commonHeaders`: those of answers made without the handler, complete lines. */
  constructor(commonHeaders: string) {
    this.#commonHeaders = commonHeaders;
  }

  /** Whether the answer was given. */
  get answered(): boolean {
    return this.#answered;
  }

  /** The request is over: its answer has left, or its client has. */
  get ended(): boolean {
    return this.#ended;
  }

  abstract header(name: string): string | undefined;

  /** Throws `HttpFault` if the request is invalid. */
  check(): void {
    if (this.method !== 'GET' && this.method !== 'HEAD') return;
    if ((this.header('content-length') ?? '0') !== '0') throw new HttpFault(400, 'HTTP_BODY', `a body is not allowed with ${this.method}`);
  }

  answer(status: number, block: string, body: string | readonly Uint8Array[], listener: SentListener | null): void {
    if (this.#answered) throw new TypeError('this request has been answered already');
    this.#answered = true;
    this.#answeredAt = this.now();
    this.#waiting = null;
    if (this.#ended) {
      listener?.sent(false);
      return;
    }
    this.#sent = listener;
    this.send(status, block, typeof body === 'string' ? [Buffer.from(body, 'latin1')] : body);
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

  waitBriefly(listener: AbortListener): void {
    this.wait(listener);
  }

  fail(error: unknown): void {
    const fault = error instanceof HttpFault ? error : new HttpFault(500, 'HTTP_HANDLER', 'the server failed on this request');
    this.countFault();
    if (this.#answered) this.drop();
    else this.answer(fault.status, `${this.#commonHeaders}Content-Type: text/plain\r\n`, `${fault.message}\n`, null);
  }

  /** The connection may serve other requests, so it is never given away. */
  takeOver(): TakenConnection | null {
    return null;
  }

  /** The client has not received the answer within `limit` ms. */
  isSlow(now: number, limit: number): boolean {
    return this.#answered && now - this.#answeredAt > limit;
  }

  /** Calls the listener that waits; `complete`: the answer has been sent completely. Once. */
  protected end(complete: boolean): void {
    this.#ended = true;
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.aborted();
    this.#sent?.sent(complete);
    this.#sent = null;
  }

  /** Sends the answer, with HEAD without its body. */
  protected abstract send(status: number, block: string, chunks: readonly Uint8Array[]): void;

  /** Ends the request whose answer is under way. */
  protected abstract drop(): void;

  /** The request was refused, or failed. */
  protected abstract countFault(): void;

  /** Monotonic time, ms. */
  protected abstract now(): number;
}
