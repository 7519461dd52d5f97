/** The interface between a request handler and the HTTP version under it. */

import type { Duplex, Readable } from 'node:stream';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { KeptAnswer } from './answer-link.ts';
import type { Image } from './direct-sender.ts';

/** A request as a handler sees it. Valid until it has been answered. */
export interface IncomingRequest {
  readonly method: string;
  readonly target: string;
  /** Value of a header by lower-case name; several lines are joined with `, `. */
  header(name: string): string | undefined;
  /** The body, where the connection cannot be taken over to read it. */
  readonly body?: Readable;
}

/** A connection that somebody else goes on with. */
export interface TakenConnection {
  readonly socket: Duplex;
  /** What was read from it already, beginning with the first byte of the request. */
  readonly bytes: Buffer;
}

/** Told how sending an answer ended: the bytes of the body are not needed any more. */
export interface SentListener {
  /** `complete` is false when the connection died first. */
  sent(complete: boolean): void;
}

/** Told that the client went away while its request was unanswered. */
export interface AbortListener {
  aborted(): void;
}

/** Where the answer to one request goes. */
export interface AnswerSink {
  /** IP address of the client. */
  readonly remoteAddress: string;
  readonly remotePort: number;
  /** The port of ours that the request came to. */
  readonly localPort: number;
  /** The request came over TLS. */
  readonly secure: boolean;
  /** An image of the body is of use. */
  readonly takesImages: boolean;
  /**
   * Answers, once. `block`: complete header lines, each with CRLF; Date, Content-Length and Connection are added.
   * A string is sent as Latin-1, so its length is its number of bytes.
   * With HEAD the body is not sent, but its length told. `listener` hears when the body's bytes are free again, which
   * may be before this call returns. `image`: the same bytes as the body, where they can be sent from without copying.
   */
  answer(status: number, block: string, body: string | readonly Uint8Array[], listener: SentListener | null, image?: Image | null): void;
  /** The answer that is about to be given may be given to others, too, without asking the handler. */
  keep(answer: KeptAnswer): void;
  /** The answer comes later; until then `listener` hears when the client goes away. */
  wait(listener: AbortListener): void;
  /** The same for an answer that is a moment away: a client that has closed its side already gets it too. */
  waitBriefly(listener: AbortListener): void;
  /** What the handler throws when it answers later: refused as what it throws while the request is handed out. */
  fail(error: unknown): void;
  /**
   * Gives the whole connection away instead of answering, while the request is being handled; null where that is
   * not possible (HTTP/2). The taker owns the socket, which is paused and has no listeners.
   */
  takeOver(): TakenConnection | null;
}

/** A request that cannot be served: the status to answer with before the connection is closed. */
export class HttpFault extends ProtocolError {
  readonly status: number;

  constructor(status: number, code: string, detail: string, offset = -1) {
    super(code, detail, offset);
    this.status = status;
  }
}

/** Bytes of the body of an answer. */
export function bodyLength(body: readonly Uint8Array[]): number {
  let length = 0;
  for (let n = 0; n < body.length; n += 1) length += body[n]?.length ?? 0;
  return length;
}

/** Takes requests, one at a time per connection. It answers at once, or calls `wait` and answers later. */
export interface RequestHandler {
  handle(request: IncomingRequest, sink: AnswerSink): void;
}

/** Counts what happens on connections; plain fields for monitoring to read. */
export interface HttpCounters {
  opened: number;
  closed: number;
  requests: number;
  /** Requests refused because they break HTTP or a limit. */
  faults: number;
  /** Connections closed because the client took too long. */
  timeouts: number;
  /** Connections closed before the answer was sent completely. */
  aborts: number;
  /** Connections refused because there are too many. */
  refused: number;
  bytesSent: number;
  /** Answers by first digit of the status: index 1 to 5. */
  readonly statuses: number[];
}

/** Counters at 0; listeners of one thread share them. */
export function newHttpCounters(): HttpCounters {
  return { opened: 0, closed: 0, requests: 0, faults: 0, timeouts: 0, aborts: 0, refused: 0, bytesSent: 0, statuses: [0, 0, 0, 0, 0, 0] };
}
