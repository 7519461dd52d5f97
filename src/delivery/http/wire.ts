/** What an HTTP/1.x connection is carried by: a socket, or TLS over one. */
import type { Duplex } from 'node:stream';
import type { AnswerLink } from './answer-link.ts';
import type { Image } from './direct-sender.ts';

/** What happens on a wire, told to its one user. */
export interface WireEvents {
  /** The bytes are the user's from then on. */
  data(chunk: Buffer): void;
  /** All that waited has been sent. */
  drain(): void;
  /** What was sent last of the oldest `send` that answered false; `complete` is false when it could not be. */
  written(complete: boolean): void;
  /** The peer sends nothing more. */
  end(): void;
  /** No byte came or went for the time of `setTimeout`. */
  timeout(): void;
  /** Why the wire is about to close. */
  failed(reason: string): void;
  /** The last event. */
  closed(): void;
}

/** Owned by its user, who ends or destroys it. */
export interface Wire {
  /** What passes is encrypted. */
  readonly secure: boolean;
  /** Images are of use to `send`. */
  readonly takesImages: boolean;
  readonly localPort: number;
  readonly destroyed: boolean;
  /** So much waits to be sent that no more should be given before `drain`. */
  readonly isFull: boolean;
  readonly isPaused: boolean;
  /** Null: its user answers everything. */
  readonly answers: AnswerLink | null;
  /** Begins to tell. */
  open(events: WireEvents): void;
  setTimeout(ms: number): void;
  pause(): void;
  resume(): void;
  /**
   * Sends `head` (Latin-1) and `chunks`, or `image`, which has the same bytes. True: all of it has left; false: `written` will tell, and the
   * chunks must stay as they are until then.
   */
  send(head: string, chunks: readonly Uint8Array[], image: Image | null): boolean;
  /** Nothing is asked, and nothing waits: what comes next may be answered without the user. */
  rest(): void;
  /** Ends our side behind what waits. */
  end(): void;
  destroy(): void;
  /** Gives the connection away: paused, and nothing more is told. Nothing may wait to be sent. */
  release(): Duplex;
}
