/** The interface between request handlers and the HTTP versions. */

import type { Duplex, Readable } from 'node:stream';
import type { Followers, KeptAnswer, LedRequest } from './answer-link.ts';
import type { MemoryFile } from './direct-sender.ts';

/** A request for handlers. Valid until it has been answered. */
export interface IncomingRequest {
  readonly method: string;
  readonly target: string;
  /** Value of a header by lower-case name; several lines are joined with `, `. */
  header(name: string): string | undefined;
  /** The body, on connections that cannot be taken over. */
  readonly body?: Readable;
}

/** A connection that another protocol continues. */
export interface TakenConnection {
  readonly socket: Duplex;
  /** Bytes read from it so far, from the first byte of the request on. */
  readonly bytes: Buffer;
}

/** Called when an answer has ended and the bytes of its body are free. */
export interface SentListener {
  /** `complete` is false if the connection ended first. */
  sent(complete: boolean): void;
}

/** Called when the client leaves before its request is answered. */
export interface AbortListener {
  aborted(): void;
}

/** The target of the answer to one request. */
export interface AnswerSink {
  /** IP address of the client. */
  readonly remoteAddress: string;
  readonly remotePort: number;
  /** The server's port for this request. */
  readonly localPort: number;
  /** The request came over TLS. */
  readonly secure: boolean;
  /** A memory file of the body can be used. */
  readonly takesMemoryFiles: boolean;
  /**
   * Answers, once. `block`: complete header lines, each with CRLF; Date, Content-Length and Connection are added.
   * A string is sent as Latin-1, so its length is its number of bytes.
   * With HEAD the body is not sent, only its length. `listener` is called when the body's bytes are free again, possibly
   * before this call returns. `memoryFile`: the same bytes as the body, in a form that can be sent without copying.
   */
  answer(
    status: number,
    block: string,
    body: string | readonly Uint8Array[],
    listener: SentListener | null,
    memoryFile?: MemoryFile | null,
  ): void;
  /** The next answer may be reused for other clients without calling the handler. */
  keep(answer: KeptAnswer): void;
  /** How long the request had waited before it was handed to the handler, ms. */
  readonly heldFor: number;
  /** The answer comes later, and equal requests of other viewers may wait for it; null: they may not. */
  lead(request: LedRequest): Followers | null;
  /** The answer comes later; until then `listener` is called if the client leaves. */
  wait(listener: AbortListener): void;
  /** As `wait`, for an answer within a moment: a client that has half-closed the connection still gets it. */
  waitBriefly(listener: AbortListener): void;
  /** Reports an exception of a handler that answers later: handled like one thrown during `handle`. */
  fail(error: unknown): void;
  /**
   * Gives the whole connection away instead of answering, while the request is being handled; null where that is
   * not possible (HTTP/2). The taker owns the socket, which is paused and has no listeners.
   */
  takeOver(): TakenConnection | null;
}

/** Bytes of an answer's body. */
export function bodyLength(body: readonly Uint8Array[]): number {
  let length = 0;
  for (let n = 0; n < body.length; n += 1) length += body[n]?.length ?? 0;
  return length;
}

/** Handles requests, one at a time per connection. Answers at once, or calls `wait` and answers later. */
export interface RequestHandler {
  handle(request: IncomingRequest, sink: AnswerSink): void;
}
