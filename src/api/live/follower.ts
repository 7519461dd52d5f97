/** A client that follows the server live: one endless response of server-sent events. */
import type { FollowedBoard } from './followed-board.ts';

/** Limit of one write, characters, which is also the most that waits in the server for a follower that does not read. */
const MAX_WRITE = 65_536;
/** Time before a browser reconnects, ms. */
const RETRY_MS = 2000;

/** The used part of a response. */
export interface FollowerSink {
  /** `done` is called when the text has been sent, or never will be. */
  write(text: string, done: () => void): unknown;
  end(text: string): unknown;
  destroy(): unknown;
}

/** Options of a follower. `onMissed` gets the number of entries that the board dropped before the follower could send them. */
export interface FollowerOptions<N extends { readonly type: string }> {
  readonly board: FollowedBoard<N>;
  readonly sink: FollowerSink;
  /** True for entries to send. */
  readonly wants: (notice: N) => boolean;
  /** `Last-Event-ID`; undefined: from now on. */
  readonly after: string | undefined;
  /** Number of kept, matching entries that come first if `after` is undefined; default: none. */
  readonly back?: number;
  readonly onMissed: (count: number) => void;
}

/**
 * A position on the board with at most one write in flight. During a write the position stays; entries that the board drops meanwhile are
 * reported as a gap. The feed calls it; needs no closing.
 */
export class Follower<N extends { readonly type: string }> {
  readonly #options: FollowerOptions<N>;
  /** Number of the next entry. */
  #next: number;
  #text: string;
  #isWriting = false;
  /** Begin of the last write; monotonic, ms. */
  #wroteAt: number;
  #closed = false;

  /** `now`: monotonic, ms. */
  constructor(options: FollowerOptions<N>, now: number) {
    this.#options = options;
    this.#wroteAt = now;
    const { board, after, back = 0 } = options;
    this.#next = board.newest + 1;
    this.#text = `retry: ${RETRY_MS}\n${frame('hello', board.idOf(board.newest), board.textOf({ type: 'hello' }))}`;
    if (after === undefined) {
      for (let left = back; left > 0 && this.#next > board.oldest; this.#next -= 1) if (this.#isWanted(this.#next - 1)) left -= 1;
      return;
    }
    const last = board.numberOf(after);
    if (last !== null) this.#next = last + 1;
    // The id belongs to an earlier run of the server, so later events are unknown.
    this.#text = `retry: ${RETRY_MS}\n${last === null ? this.#gap(null, board.newest) : ''}`;
  }

  /** Begin of the write in flight; null: none. */
  get stalledSince(): number | null {
    return this.#isWriting ? this.#wroteAt : null;
  }

  /** Begin of the last write. */
  get wroteAt(): number {
    return this.#wroteAt;
  }

  /** Writes the pending events, unless the last write is still under way. */
  pump(now: () => number): void {
    if (this.#isWriting || this.#closed) return;
    const text = this.#text + this.#take();
    this.#text = '';
    if (text !== '') this.#write(text, now);
  }

  /** Sends a comment, so that connections and proxies do not take silence for an end. */
  beat(now: () => number): void {
    if (!this.#isWriting && !this.#closed) this.#write(': \n\n', now);
  }

  /** Sends an `end` event and ends the response, even during a write. */
  end(): void {
    this.#closed = true;
    this.#options.sink.end(frame('end', null, '{"type":"end"}'));
  }

  /** Destroys the connection. */
  cut(): void {
    this.#closed = true;
    this.#options.sink.destroy();
  }

  /** Called when the connection is gone. */
  gone(): void {
    this.#closed = true;
  }

  #write(text: string, now: () => number): void {
    this.#isWriting = true;
    this.#wroteAt = now();
    this.#options.sink.write(text, () => {
      this.#isWriting = false;
      this.pump(now);
    });
  }

  #isWanted(number: number): boolean {
    const posted = this.#options.board.at(number);
    return posted !== undefined && this.#options.wants(posted.notice);
  }

  /** The next entries as text. */
  #take(): string {
    const { board, wants, onMissed } = this.#options;
    let text = '';
    if (this.#next < board.oldest) {
      const missed = board.oldest - this.#next;
      onMissed(missed);
      text = this.#gap(missed, board.oldest - 1);
      this.#next = board.oldest;
    }
    while (this.#next <= board.newest && text.length < MAX_WRITE) {
      const posted = board.at(this.#next);
      this.#next += 1;
      if (posted !== undefined && wants(posted.notice)) text += frame(posted.notice.type, posted.id, posted.json);
    }
    return text;
  }

  #gap(missed: number | null, last: number): string {
    const { board } = this.#options;
    return frame('gap', board.idOf(last), board.textOf({ type: 'gap', missed }));
  }
}

function frame(type: string, id: string | null, json: string): string {
  return `${id === null ? '' : `id: ${id}\n`}event: ${type}\ndata: ${json}\n\n`;
}
