/** Answers connections above the limit with the reason, before their request is read. */
import type { Socket } from 'node:net';

/** Refused connections that are answered at a time: each keeps its descriptor meanwhile. Others are closed without an answer. */
const MAX_TOLD = 8;
/** Time for a client to read the answer, ms. */
const READ_MS = 1000;
const TEXT = 'too many connections, of your address or of all\n';

export class RefusedConnections {
  readonly #answer: string;
  readonly #open = new Set<Socket>();

  /** `commonHeaders`: complete lines. */
  constructor(commonHeaders: string) {
    this.#answer =
      `HTTP/1.1 503 Service Unavailable\r\n${commonHeaders}Retry-After: 5\r\nContent-Type: text/plain\r\n` +
      `Content-Length: ${TEXT.length}\r\nConnection: close\r\n\r\n${TEXT}`;
  }

  /** Sends the refusal without reading a request, and closes. */
  answer(socket: Socket): void {
    if (this.#open.size >= MAX_TOLD || socket.destroyed) {
      socket.destroy();
      return;
    }
    this.#open.add(socket);
    const deadline = setTimeout(() => socket.destroy(), READ_MS);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      clearTimeout(deadline);
      this.#open.delete(socket);
    });
    // With unread bytes the kernel would reset the connection, and the answer would be lost.
    socket.on('end', () => socket.destroy()).resume();
    socket.end(this.#answer);
  }

  /** Idempotent. */
  close(): void {
    for (const socket of this.#open) socket.destroy();
  }
}
