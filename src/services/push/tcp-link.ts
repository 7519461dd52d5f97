/** A TCP or TLS connection that media is sent over. */
import net from 'node:net';
import tls from 'node:tls';
import { messageOf } from '../../util/message-of.ts';
import { PushFailure } from './push-failure.ts';

const KEEP_ALIVE_DELAY_MS = 10_000;
/** For the last bytes to reach the receiver before the connection is cut. */
const LINGER_MS = 1000;

/** While more than this waits to be sent, nothing is read: a receiver that sends requests without reading gets no answers. */
const MAX_READING_BACKLOG = 1024 * 1024;

/** Address and callbacks. No callback comes after `close`. */
export interface TcpLinkOptions {
  readonly host: string;
  readonly port: number;
  /** TLS; the certificate must be one the system trusts. */
  readonly secure: boolean;
  /** For a receiver that takes nothing though something waits, ms. */
  readonly sendTimeout: number;
  /** The connection is there (and encrypted). */
  readonly onConnect: () => void;
  readonly onData: (data: Buffer) => void;
  /** Everything that waited has been taken by the system. */
  readonly onDrain: () => void;
  /** The connection is gone. Called once, unless it was closed before. */
  readonly onFailed: (failure: PushFailure) => void;
}

/** Owns its socket and begins to connect when it is made. Its maker closes it, also before it is connected. */
export class TcpLink {
  readonly #options: TcpLinkOptions;
  readonly #socket: net.Socket;
  readonly #gone: Promise<void>;
  #connected = false;
  #corked = false;
  #over = false;

  constructor(options: TcpLinkOptions) {
    const { host, port, secure } = options;
    this.#options = options;
    // An address is no server name (RFC 6066 §3).
    const servername = net.isIP(host) === 0 ? { servername: host } : {};
    this.#socket = secure ? tls.connect({ host, port, ...servername }) : net.connect({ host, port });
    this.#gone = new Promise((resolve) => this.#socket.once('close', () => resolve()));
    this.#listen();
  }

  /** False while earlier bytes wait for the receiver. */
  get writable(): boolean {
    return !this.#socket.writableNeedDrain;
  }

  /** Gathers `bytes` until `flush`; they must stay as they are. */
  write(bytes: Uint8Array): void {
    if (this.#over) return;
    if (!this.#corked) {
      this.#corked = true;
      this.#socket.cork();
    }
    this.#socket.write(bytes);
  }

  /** Sends gathered bytes in as few system calls as possible. */
  flush(): void {
    if (!this.#corked) return;
    this.#corked = false;
    this.#socket.uncork();
  }

  /** Ends the connection and reports the failure. */
  fail(failure: PushFailure): void {
    if (this.#over) return;
    this.#over = true;
    this.#socket.destroy();
    this.#options.onFailed(failure);
  }

  /** Ends the connection after the waiting bytes; resolves when it is closed. Idempotent. */
  close(): Promise<void> {
    if (this.#over) return this.#gone;
    this.flush();
    this.#over = true;
    if (!this.#connected) this.#socket.destroy();
    else this.#socket.resume().end();
    const cut = setTimeout(() => this.#socket.destroy(), LINGER_MS);
    void this.#gone.then(() => clearTimeout(cut));
    return this.#gone;
  }

  #listen(): void {
    const { secure, sendTimeout, onData, onDrain } = this.#options;
    const socket = this.#socket;
    socket.setNoDelay(true);
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      if (this.#over) return;
      this.#connected = true;
      socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
      // Node.js counts what the system accepts of a write as activity, so a slow receiver does not time out.
      socket.setTimeout(sendTimeout);
      this.#options.onConnect();
    });
    socket.on('timeout', () => {
      if (socket.writableLength > 0) this.fail(new PushFailure('stalled', `the receiver read nothing for ${sendTimeout} ms`));
    });
    // Read to its end also while closing: unread bytes would turn the end of the connection into a reset.
    socket.on('data', (data: Buffer) => {
      if (this.#over) return;
      onData(data);
      if (socket.writableLength > MAX_READING_BACKLOG) socket.pause();
    });
    socket.on('drain', () => {
      socket.resume();
      if (!this.#over) onDrain();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => this.fail(failureOf(error, this.#connected)));
    socket.on('end', () => this.fail(new PushFailure('lost', 'the receiver ended the connection')));
    socket.on('close', () => this.fail(new PushFailure('lost', 'the connection was closed')));
  }
}

function failureOf(error: NodeJS.ErrnoException, connected: boolean): PushFailure {
  // If several addresses were tried, each has its own error, and the outer error has no text.
  const text = error instanceof AggregateError ? error.errors.map(messageOf).join('; ') : error.message;
  return connected ? new PushFailure('lost', `connection lost: ${text}`) : new PushFailure('unreachable', `cannot connect: ${text}`);
}
