/** The byte transport of an HTTP/1.x connection: a socket, or TLS over one. */
import type { Duplex } from 'node:stream';
import type { AnswerLink } from './answer-link.ts';
import type { MemoryFile } from './direct-sender.ts';

/** Events of a transport for its only user. */
export interface TransportEvents {
  /** Received bytes, which belong to the user. */
  data(chunk: Buffer): void;
  /** The queue has been sent. */
  drain(): void;
  /** The oldest `send` that returned false has ended; `complete` is false if it failed. */
  written(complete: boolean): void;
  /** The peer has closed its side. */
  end(): void;
  /** No byte was received or sent within the time of `setTimeout`. */
  timeout(): void;
  /** The reason why the transport is about to close. */
  failed(reason: string): void;
  /** The last event. */
  closed(): void;
}

/** Owned by its user, who ends or destroys it. */
export interface ByteTransport {
  /** Whether the bytes are encrypted. */
  readonly secure: boolean;
  /** `send` can use memory files. */
  readonly takesMemoryFiles: boolean;
  readonly localPort: number;
  readonly destroyed: boolean;
  /** The queue is full: the user should wait for `drain`. */
  readonly isFull: boolean;
  readonly isPaused: boolean;
  /** Null: the user answers every request. */
  readonly answers: AnswerLink | null;
  /** Starts the events. */
  open(events: TransportEvents): void;
  setTimeout(ms: number): void;
  pause(): void;
  resume(): void;
  /**
   * Sends `head` (Latin-1) and `chunks`, or `memoryFile`, which has the same bytes. True: everything has been sent; false: `written` follows,
   * and the chunks must not change until then.
   */
  send(head: string, chunks: readonly Uint8Array[], memoryFile: MemoryFile | null): boolean;
  /** No request is open, and the queue is empty: the next request may be answered without the user. */
  rest(): void;
  /** Half-closes after the queue is sent. */
  end(): void;
  destroy(): void;
  /** Gives the connection away: paused, without further events. The queue must be empty. */
  release(): Duplex;
}
