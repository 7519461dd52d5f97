/**
 * Closes unused connections of Node's own HTTP servers. Node's timers are reset by any byte: a peer that sends an empty line or an
 * HTTP/2 ping every few seconds, or reads nothing of its answer but sends requests, would keep its connection for ever.
 */
import type { Server, Socket } from 'node:net';

/** All in milliseconds. */
export interface WatchTimes {
  /** From accepting a connection to its first request, TLS handshake included. */
  readonly first: number;
  /** Maximum time without a request. */
  readonly idle: number;
  /** Maximum time for the client to receive a written answer. */
  readonly send: number;
  /** Interval of the checks. */
  readonly sweep: number;
}

/** The watched part of an answer. */
export interface WatchedAnswer {
  /** All of it is written, but possibly not sent. */
  readonly writableEnded: boolean;
  once(event: 'close', listener: () => void): unknown;
}

interface Entry {
  readonly socket: Socket;
  /** Unfinished answers, with the time when they were completely written; 0 before that. */
  readonly answers: Map<WatchedAnswer, number>;
  /** Start of the time without a request. */
  idleSince: number;
  used: boolean;
}

/** The origin of a request; unique among open connections. */
type Ends = Pick<Socket, 'remoteAddress' | 'remotePort'>;

/** Watches the connections of one listener between `start` and `stop`. */
export class ConnectionWatch {
  /** Connections that were ended. */
  ended = 0;
  readonly #times: WatchTimes;
  readonly #entries = new Map<string, Entry>();
  #timer: NodeJS.Timeout | null = null;

  /** Watches every connection of `server`, which may be a TLS server; its owner reports requests with `began`. */
  constructor(server: Server, times: WatchTimes) {
    this.#times = times;
    server.on('connection', (socket: Socket) => this.#add(socket));
  }

  /** Watched connections. */
  get size(): number {
    return this.#entries.size;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#sweep(performance.now()), this.#times.sweep);
  }

  /** Idempotent; connections stay open. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** A request has arrived, and `answer` will answer it. */
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

  /** Another owner watches the connection from now on. */
  release(ends: Ends): void {
    this.#entries.delete(keyOf(ends));
  }

  #add(socket: Socket): void {
    const key = keyOf(socket);
    const entry: Entry = { socket, answers: new Map(), idleSince: performance.now(), used: false };
    this.#entries.set(key, entry);
    socket.once('close', () => {
      // A peer may reuse its port before the event for the old connection arrives.
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
