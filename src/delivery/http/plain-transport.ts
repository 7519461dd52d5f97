/** A socket as a transport: sends through the addon, if it is loaded, as much as the kernel accepts at once. */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { AnswerLink, AnswerLinks } from './answer-link.ts';
import { bodyLength } from './answer-sink.ts';
import type { ByteTransport, TransportEvents } from './byte-transport.ts';
import { type DirectSender, descriptorOf, type MemoryFile } from './direct-sender.ts';

const NO_BYTES = new Uint8Array(0);

/** The transport of an accepted socket. */
export class PlainTransport implements ByteTransport {
  readonly secure = false;
  readonly takesMemoryFiles: boolean;
  readonly localPort: number;
  readonly #socket: Socket;
  readonly #sender: DirectSender | null;
  readonly #links: AnswerLinks | null;
  #answers: AnswerLink | null = null;
  #silence: () => void = () => {};
  #written: (error?: Error | null) => void = () => {};

  /** `sender` null: everything goes through Node.js; `links` null: the user answers every request. */
  constructor(socket: Socket, sender: DirectSender | null, links: AnswerLinks | null = null) {
    this.#links = links;
    this.#socket = socket;
    this.#sender = sender;
    this.takesMemoryFiles = sender !== null;
    this.localPort = socket.localPort ?? 0;
  }

  get destroyed(): boolean {
    return this.#socket.destroyed;
  }

  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  get isPaused(): boolean {
    return this.#socket.isPaused();
  }

  get answers(): AnswerLink | null {
    return this.#answers;
  }

  open(events: TransportEvents): void {
    this.#written = (error) => events.written(!error);
    const listeners = {
      data: (chunk: Buffer) => events.data(chunk),
      drain: () => events.drain(),
      end: () => events.end(),
      timeout: () => events.timeout(),
      error: (error: NodeJS.ErrnoException) => events.failed(error.code ?? error.message),
      close: () => {
        this.#answers?.close();
        events.closed();
      },
    };
    for (const [event, listener] of Object.entries(listeners)) this.#socket.on(event, listener);
    this.#silence = () => {
      for (const [event, listener] of Object.entries(listeners)) this.#socket.off(event, listener);
    };
    const descriptor = descriptorOf(this.#socket);
    if (descriptor >= 0) this.#answers = this.#links?.link(descriptor) ?? null;
  }

  setTimeout(ms: number): void {
    this.#socket.setTimeout(ms);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  send(head: string, chunks: readonly Uint8Array[], memoryFile: MemoryFile | null): boolean {
    const sent = this.#sendDirectly(head, chunks, memoryFile);
    if (sent === head.length + bodyLength(chunks)) return true;
    this.#queue(head, chunks, sent);
    return false;
  }

  rest(): void {
    const socket = this.#socket;
    if (socket.readableLength === 0 && socket.writableLength === 0 && !socket.isPaused()) this.#answers?.arm();
  }

  end(): void {
    this.#answers?.disarm();
    this.#socket.end();
  }

  destroy(): void {
    this.#answers?.close();
    this.#socket.destroy();
  }

  release(): Duplex {
    this.#answers?.close();
    const socket = this.#socket;
    socket.pause();
    socket.setTimeout(0);
    this.#silence();
    return socket;
  }

  /** The number of bytes sent at once, without Node.js. */
  #sendDirectly(head: string, chunks: readonly Uint8Array[], memoryFile: MemoryFile | null): number {
    if (this.#sender === null) return 0;
    if (memoryFile === null || chunks.length === 0) return this.#sender.send(this.#socket, head, chunks);
    return this.#sender.sendMemoryFile(this.#socket, head, memoryFile);
  }

  /** Writes all but the first `sent` bytes to the socket. */
  #queue(head: string, chunks: readonly Uint8Array[], sent: number): void {
    const socket = this.#socket;
    if (sent === 0 && chunks.length === 0) {
      socket.write(head, 'latin1', this.#written);
      return;
    }
    let skip = sent;
    let last: Uint8Array = NO_BYTES;
    socket.cork();
    for (const bytes of [Buffer.from(head, 'latin1'), ...chunks]) {
      if (skip < bytes.length) {
        if (last.length > 0) socket.write(last);
        last = bytes.subarray(skip);
      }
      skip = Math.max(0, skip - bytes.length);
    }
    socket.write(last, this.#written);
    socket.uncork();
  }
}
