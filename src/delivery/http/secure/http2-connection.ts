/** One HTTP/2 connection: emits concurrent requests and sends their answers. */
import type { ClientEnd } from '../../../wire/proxy/proxy-header.ts';
import { bodyLength } from '../answer-sink.ts';
import type { HttpConnectionContext } from '../http-connection.ts';
import { type Http2Exchange, Http2Sink } from './http2-sink.ts';
import type { TlsLink, TlsUser } from './tls-link.ts';

/** Types of events from the addon (`Http2EventType`). */
const REQUEST = 0;
const BODY = 1;
const BODY_END = 2;
const CLOSED = 3;
/** Error codes (RFC 9113 section 7). */
const INTERNAL_ERROR = 2;
const CANCEL = 8;
/** Handshake and first request may each take the time of a request header. */
const FIRST_TIMES = 2;

/** Callbacks and limits of a connection, as in `HttpConnectionContext`. */
export interface Http2ConnectionContext extends Omit<HttpConnectionContext, 'spokeTls' | 'closed'> {
  /** The connection has ended. */
  readonly closed: (connection: Http2Connection, reason: string) => void;
}

/** The connection on a link whose client has chosen HTTP/2; it owns the link. */
export class Http2Connection implements TlsUser, Http2Exchange {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localPort: number;
  readonly commonHeaders: string;
  readonly #link: TlsLink;
  readonly #context: Http2ConnectionContext;
  readonly #sinks = new Map<number, Http2Sink>();
  readonly #openedAt: number;
  #idleSince: number;
  #blockedSince = 0;
  #requests = 0;
  /** During a turn: its answers are sent together. */
  #busy = false;
  #leaving = false;
  #reason = '';

  constructor(link: TlsLink, context: Http2ConnectionContext, client: ClientEnd) {
    this.#link = link;
    this.#context = context;
    this.remoteAddress = client.address;
    this.remotePort = client.port;
    this.localPort = link.socket.localPort ?? 0;
    this.commonHeaders = context.commonHeaders;
    this.#openedAt = context.now();
    this.#idleSince = this.#openedAt;
    context.counters.opened += 1;
  }

  /** Requests received so far. */
  get requests(): number {
    return this.#requests;
  }

  now(): number {
    return this.#context.now();
  }

  fault(): void {
    this.#context.counters.faults += 1;
  }

  received(): void {
    // For HTTP/1.1 only.
  }

  happened(): void {
    const nested = this.#busy;
    this.#busy = true;
    try {
      const events = this.#link.takeEvents();
      for (let at = 0; at + 3 < events.length; at += 4) {
        this.#onEvent(events[at] as number, events[at + 1] as number, events[at + 2] as number, events[at + 3] as string | Buffer);
      }
    } finally {
      this.#busy = nested;
    }
    if (!nested) this.#flush();
  }

  answer(stream: number, status: number, block: string, body: readonly Uint8Array[], headOnly: boolean): boolean {
    const { counters, date } = this.#context;
    const length = bodyLength(body);
    const group = Math.floor(status / 100);
    counters.statuses[group] = (counters.statuses[group] ?? 0) + 1;
    if (!headOnly) counters.bytesSent += length;
    const lines = `${date.line}${block}content-length: ${length}\r\n`;
    const waited = this.#link.respond(stream, status, lines, headOnly ? null : body);
    if (!this.#busy) this.#flush();
    return waited;
  }

  consumed(stream: number, bytes: number): void {
    this.#link.consumed(stream, bytes);
    if (!this.#busy) this.#flush();
  }

  drop(stream: number): void {
    this.#link.reset(stream, INTERNAL_ERROR);
    if (!this.#busy) this.#flush();
  }

  unblocked(): void {
    this.#blockedSince = 0;
    this.#flush();
  }

  ended(): void {
    // No one can receive the answers.
    this.#because('the client closed');
    if (this.#sinks.size === 0) this.#link.end();
    else this.#link.destroy();
  }

  timeout(): void {
    // Requests that wait for media have no deadline here, and `sweep` checks the others.
  }

  failed(reason: string): void {
    this.#context.counters.faults += 1;
    this.#because(reason);
  }

  closed(): void {
    const { counters } = this.#context;
    counters.closed += 1;
    for (const sink of this.#sinks.values()) this.#over(sink, false);
    this.#sinks.clear();
    this.#context.closed(this, this.#reason === '' ? 'closed' : this.#reason);
  }

  /** Checks the deadlines of this connection. */
  sweep(now: number): void {
    const { limits, counters } = this.#context;
    if (this.#isIdle(now)) {
      counters.timeouts += 1;
      this.destroy(this.#requests === 0 ? 'nothing was asked' : 'idle');
      return;
    }
    if (this.#blockedSince !== 0 && now - this.#blockedSince > limits.sendTime) {
      counters.timeouts += 1;
      this.destroy('the client took an answer too slowly');
      return;
    }
    let slow = false;
    for (const [stream, sink] of this.#sinks) {
      if (!sink.isSlow(now, limits.sendTime)) continue;
      slow = true;
      counters.timeouts += 1;
      this.#link.reset(stream, CANCEL);
    }
    if (slow) this.#flush();
  }

  /** Accepts no more requests, and ends after the answers in progress. Idempotent. */
  close(reason: string): void {
    this.#because(reason);
    if (this.#leaving) return;
    this.#leaving = true;
    this.#link.goAway();
    this.#flush();
  }

  /** Closes the connection at once. */
  destroy(reason: string): void {
    this.#because(reason);
    this.#link.destroy();
  }

  #isIdle(now: number): boolean {
    if (this.#sinks.size > 0) return false;
    const { headerTime, idleTime } = this.#context.limits;
    if (this.#requests === 0) return now - this.#openedAt > FIRST_TIMES * headerTime;
    return now - this.#idleSince > idleTime;
  }

  #onEvent(type: number, stream: number, number: number, bytes: string | Buffer): void {
    if (type === REQUEST) this.#onRequest(stream, String(bytes), number === 1);
    else if (type === BODY && typeof bytes === 'object') this.#sinks.get(stream)?.bodyCame(bytes);
    else if (type === BODY_END) this.#sinks.get(stream)?.bodyCame(null);
    else if (type === CLOSED) {
      const sink = this.#sinks.get(stream);
      this.#sinks.delete(stream);
      this.#idleSince = this.#context.now();
      if (sink !== undefined) this.#over(sink, number === 1);
    }
  }

  #onRequest(stream: number, head: string, whole: boolean): void {
    this.#requests += 1;
    this.#context.counters.requests += 1;
    const sink = new Http2Sink(stream, head, whole, this);
    this.#sinks.set(stream, sink);
    try {
      sink.check();
      this.#context.handler.handle(sink, sink);
    } catch (error) {
      sink.fail(error);
    }
  }

  /** An exception of a listener ends its own request only. */
  #over(sink: Http2Sink, complete: boolean): void {
    if (!complete) this.#context.counters.aborts += 1;
    try {
      sink.closed(complete);
    } catch {
      this.#context.counters.faults += 1;
    }
  }

  #flush(): void {
    this.#link.flush();
    if (this.#link.isBlocked && this.#blockedSince === 0) this.#blockedSince = this.#context.now();
    if (this.#leaving && this.#sinks.size === 0) this.#link.end();
  }

  #because(reason: string): void {
    if (this.#reason === '') this.#reason = reason;
  }
}
