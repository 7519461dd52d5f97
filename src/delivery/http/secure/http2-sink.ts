/** One HTTP/2 request and its answer. */
import { Readable } from 'node:stream';
import { SecureSink } from '../secure-sink.ts';

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
export class Http2Sink extends SecureSink {
  override readonly remoteAddress: string;
  override readonly remotePort: number;
  override readonly localPort: number;
  override readonly method: string;
  override readonly target: string;
  readonly #stream: number;
  /** `\nname: value\n…\n`, Latin-1. */
  readonly #head: string;
  readonly #whole: boolean;
  readonly #exchange: Http2Exchange;
  #body: Readable | null = null;
  /** Received parts of the body before the first read; limited by the flow-control window. */
  #chunks: (Buffer | null)[] = [];
  #unread = 0;

  /** `whole`: no body follows. */
  constructor(stream: number, head: string, whole: boolean, exchange: Http2Exchange) {
    super(exchange.commonHeaders);
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

  override get body(): Readable {
    if (this.#body === null) {
      const body = new Readable({ read: () => this.#grant() });
      body.on('error', () => {});
      this.#body = body;
      for (const chunk of this.#chunks.splice(0)) body.push(chunk);
      if (this.#whole) body.push(null);
    }
    return this.#body;
  }

  override header(name: string): string | undefined {
    const wanted = `\n${name === 'host' ? ':authority' : name}: `;
    let at = this.#head.indexOf(wanted);
    if (at < 0) return name === 'host' ? this.#lines('\nhost: ') : undefined;
    const end = this.#head.indexOf('\n', at + 1);
    const value = this.#head.slice(at + wanted.length, end);
    at = this.#head.indexOf(wanted, end);
    return at < 0 ? value : this.#lines(wanted);
  }

  /** Bytes of the body, or null at its end. */
  bodyCame(chunk: Buffer | null): void {
    if (chunk !== null) this.#unread += chunk.length;
    if (this.#body === null) this.#chunks.push(chunk);
    else this.#body.push(chunk);
  }

  /** The stream has ended; `complete`: the answer has been sent completely. Idempotent. */
  closed(complete: boolean): void {
    if (this.ended) return;
    this.#body?.destroy();
    this.end(complete);
  }

  protected override send(status: number, block: string, chunks: readonly Uint8Array[]): void {
    if (!this.#exchange.answer(this.#stream, status, block, chunks, this.method === 'HEAD')) this.closed(false);
  }

  protected override drop(): void {
    this.#exchange.drop(this.#stream);
  }

  protected override countFault(): void {
    this.#exchange.fault();
  }

  protected override now(): number {
    return this.#exchange.now();
  }

  #grant(): void {
    const bytes = this.#unread;
    this.#unread = 0;
    if (bytes > 0 && !this.ended) this.#exchange.consumed(this.#stream, bytes);
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
