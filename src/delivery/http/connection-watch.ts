/**
 * Ends connections of Node's own HTTP servers that nobody uses. Node's timers count bytes: a peer that sends an empty line or an
 * HTTP/2 ping every few seconds, or reads nothing of its answer and goes on asking, would keep its connection for ever.
 */
import type { Server, Socket } from 'node:net';

/** All in milliseconds. */
export interface WatchTimes {
  /** From accepting a connection to its first request, TLS handshake included. */
  readonly first: number;
  /** Without a request in progress. */
  readonly idle: number;
  /** For the client to take an answer that is all written. */
  readonly send: number;
  /** How often the times above are looked at. */
  readonly sweep: number;
}

/** The watched part of an answer. */
export interface WatchedAnswer {
  /** All of it is written, though not all of it has left. */
  readonly writableEnded: boolean;
  once(event: 'close', listener: () => void): unknown;
}

interface Entry {
  readonly socket: Socket;
  /** Answers that are not over, with the time since which they are all written; 0 while they are not. */
  readonly answers: Map<WatchedAnswer, number>;
  /** Since when no request is in progress. */
  idleSince: number;
  used: boolean;
}

/** Where a request came from, which is a connection's own while it lasts. */
type Ends = Pick<Socket, 'remoteAddress' | 'remotePort'>;

/** Watches the connections of one listener between `start` and `stop`. */
export class ConnectionWatch {
  /** Connections that were ended. */
  ended = 0;
  readonly #times: WatchTimes;
  readonly #entries = new Map<string, Entry>();
  #timer: NodeJS.Timeout | null = null;

  /** Hears of every connection of `server`, which may be a TLS server: what its clients send is told with `began`. */
  constructor(server: Server, times: WatchTimes) {
    this.#times = times;
    server.on('connection', (socket: Socket) => this.#add(socket));
  }

  /** Connections that are watched. */
  get size(): number {
    return this.#entries.size;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#sweep(performance.now()), this.#times.sweep);
  }

  /** Idempotent; connections stay as they are. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** A request has come, to be answered with `answer`. */
  began(ends: Ends, answer: WatchedAnswer): void {
    const entry = this.#entries.get(keyOf(ends));
    if (entry === undefined) return;
    entry.used = true;
    entry.answers.set(answer, 0);
    answer.once('close', () => {
      entry.answers.delete(answer);
      entry.idleSince = performance.now();
    });
  }

  /** Somebody else looks after the connection from now on. */
  release(ends: Ends): void {
    this.#entries.delete(keyOf(ends));
  }

  #add(socket: Socket): void {
    const key = keyOf(socket);
    const entry: Entry = { socket, answers: new Map(), idleSince: performance.now(), used: false };
    this.#entries.set(key, entry);
    socket.once('close', () => {
      // A peer may use its port again before we hear of the end.
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    });
  }

  #sweep(now: number): void {
    for (const entry of this.#entries.values()) {
      if (!this.#isOver(entry, now)) continue;
      this.ended += 1;
      entry.socket.destroy();
    }
  }

  #isOver({ answers, idleSince, used }: Entry, now: number): boolean {
    const { first, idle, send } = this.#times;
    if (answers.size === 0) return now - idleSince > (used ? idle : first);
    for (const [answer, endedAt] of answers) {
      if (!answer.writableEnded) continue;
      if (endedAt === 0) answers.set(answer, now);
      else if (now - endedAt > send) return true;
    }
    return false;
  }
}

function keyOf({ remoteAddress = '', remotePort = 0 }: Ends): string {
  return `${remoteAddress} ${remotePort}`;
}
