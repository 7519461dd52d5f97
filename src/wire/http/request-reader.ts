/** Splits the byte stream of a connection into request heads. */

import { beginsTls } from '../../util/wrong-protocol.ts';
import { HttpFault } from './http-fault.ts';
import { type HeadLimits, isUpperCase, RequestHead } from './request-head.ts';

const LF = 0x0a;
const CR = 0x0d;
const HEAD_END = Buffer.from('\r\n\r\n');
/**
 * Empty lines allowed before a request (RFC 9112 section 2.2), over any time: otherwise an occasional empty line would hold a connection
 * for ever.
 */
const MAX_EMPTY_LINES = 2;
const FIRST_CAPACITY = 2048;

/** The reader of one connection. Copies only if a head arrives in pieces; always returns the same head object. */
export class RequestReader {
  readonly #limits: HeadLimits;
  readonly #head: RequestHead;
  #bytes: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;
  /** Start of the last returned head. */
  #headStart = 0;
  /** The search for the end of the head continues here. */
  #searched = 0;
  /** Empty lines since the last head. */
  #emptyLines = 0;
  /** `#bytes` was allocated here, so appending may write after `#end`. */
  #owned = false;

  constructor(limits: HeadLimits) {
    this.#limits = limits;
    this.#head = new RequestHead(limits);
  }

  /** Received bytes that belong to no request yet. */
  get buffered(): number {
    return this.#end - this.#start;
  }

  /** Adds received bytes. Without a remainder they are used in place: the caller must not change them. */
  push(chunk: Buffer): void {
    if (this.#start === this.#end) {
      this.#bytes = chunk;
      this.#start = 0;
      this.#end = chunk.length;
      this.#searched = 0;
      this.#owned = false;
      return;
    }
    const needed = this.buffered + chunk.length;
    // A returned head may still refer to the bytes, so they are never moved in place.
    if (!this.#owned || this.#end + chunk.length > this.#bytes.length) this.#grow(needed);
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
  }

  /**
   * The next complete head, or null if bytes are missing. The head is valid until the next call.
   * Throws `HttpFault`; the reader cannot continue after that.
   */
  next(): RequestHead | null {
    this.#skipEmptyLines();
    if (this.#start === this.#end) return null;
    const found = this.#bytes.indexOf(HEAD_END, this.#searched);
    if (found < 0 || found + HEAD_END.length > this.#end) {
      this.#checkPartial();
      this.#searched = Math.max(this.#start, this.#end - HEAD_END.length + 1);
      return null;
    }
    const end = found + HEAD_END.length;
    this.#head.parse(this.#bytes, this.#start, end);
    this.#headStart = this.#start;
    this.#start = end;
    this.#searched = end;
    this.#emptyLines = 0;
    return this.#head;
  }

  /** Removes and returns the last returned head and all bytes after it, for the taker of the connection. */
  takeBack(): Buffer {
    const bytes = this.#bytes.subarray(this.#headStart, this.#end);
    this.#start = this.#end;
    return bytes;
  }

  #grow(needed: number): void {
    const grown = Buffer.alloc(Math.max(FIRST_CAPACITY, needed * 2));
    this.#bytes.copy(grown, 0, this.#start, this.#end);
    this.#searched -= this.#start;
    this.#end -= this.#start;
    this.#start = 0;
    this.#headStart = 0;
    this.#bytes = grown;
    this.#owned = true;
  }

  #skipEmptyLines(): void {
    for (; this.#emptyLines < MAX_EMPTY_LINES; this.#emptyLines += 1) {
      if (this.#end - this.#start < 2 || this.#bytes[this.#start] !== CR || this.#bytes[this.#start + 1] !== LF) break;
      this.#start += 2;
    }
    if (this.#searched < this.#start) this.#searched = this.#start;
  }

  /** Refuses an invalid partial head without waiting for its end. */
  #checkPartial(): void {
    const size = this.buffered;
    const first = this.#bytes[this.#start];
    if (!isUpperCase(first) && !(first === CR && size === 1)) {
      if (beginsTls(this.#bytes.subarray(this.#start, this.#start + 1)))
        throw new HttpFault(400, 'HTTP_TLS', 'the connection does not begin with a method but with TLS, which this port does not speak', 0);
      throw new HttpFault(400, 'HTTP_METHOD', 'the request does not begin with a method', 0);
    }
    const line = this.#bytes.indexOf(LF, this.#start);
    if (line < 0 || line >= this.#end) {
      // The buffer may already contain `HTTP/1.1` and CR.
      if (size > this.#limits.requestLine + 16) {
        throw new HttpFault(414, 'HTTP_REQUEST_LINE', `the request line is longer than ${this.#limits.requestLine} bytes`);
      }
      return;
    }
    if (this.#end - line > this.#limits.headerBytes + HEAD_END.length) {
      throw new HttpFault(431, 'HTTP_HEADER_BYTES', `more than ${this.#limits.headerBytes} bytes of headers`);
    }
    // Checked lines are not checked again: a head that arrives byte by byte would cost all its lines for each byte.
    let at = this.#bytes.indexOf(LF, Math.max(line, this.#searched));
    while (at >= 0 && at < this.#end) {
      if (this.#bytes[at - 1] !== CR) {
        // If the parser finds an error before this line, that error is reported, as if all bytes had arrived at once.
        this.#head.parse(this.#bytes, this.#start, at + 1);
        throw new HttpFault(400, 'HTTP_BARE_LF', 'a line ends with a bare LF', at - this.#start);
      }
      at = this.#bytes.indexOf(LF, at + 1);
    }
  }
}
