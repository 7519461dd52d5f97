/** HTTP/1.1 over TLS without Node's streams: bytes that the kernel does not accept at once stay unencrypted in their place. */
import type { Duplex } from 'node:stream';
import { bodyLength } from '../answer-sink.ts';
import type { ByteTransport, TransportEvents } from '../byte-transport.ts';
import { SecureDuplex } from './secure-duplex.ts';
import type { TlsLink, TlsUser } from './tls-link.ts';

/** An answer that is not completely sent. */
interface Waiting {
  readonly head: string;
  readonly chunks: readonly Uint8Array[];
  readonly size: number;
  /** Number of its encrypted bytes. */
  at: number;
}

/** The transport of a link whose client has chosen HTTP/1.1; it owns the link. */
export class SecureTransport implements ByteTransport, TlsUser {
  readonly secure = true;
  readonly takesMemoryFiles = false;
  readonly answers = null;
  readonly localPort: number;
  readonly #link: TlsLink;
  readonly #waiting: Waiting[] = [];
  #events: TransportEvents | null = null;
  #ending = false;

  constructor(link: TlsLink) {
    this.#link = link;
    this.localPort = link.socket.localPort ?? 0;
  }

  get destroyed(): boolean {
    return this.#link.socket.destroyed;
  }

  get isFull(): boolean {
    return this.#waiting.length > 0;
  }

  get isPaused(): boolean {
    return this.#link.socket.isPaused();
  }

  open(events: TransportEvents): void {
    this.#events = events;
  }

  setTimeout(ms: number): void {
    this.#link.socket.setTimeout(ms);
  }

  pause(): void {
    this.#link.socket.pause();
  }

  resume(): void {
    this.#link.socket.resume();
  }

  send(head: string, chunks: readonly Uint8Array[]): boolean {
    const size = head.length + bodyLength(chunks);
    const at = this.#waiting.length > 0 ? 0 : this.#link.send(head, chunks, 0);
    if (at === size && !this.#link.isBlocked) return true;
    this.#waiting.push({ head, chunks, size, at });
    return false;
  }

  rest(): void {
    // All bytes go to the user.
  }

  end(): void {
    this.#ending = true;
    if (this.#waiting.length === 0) this.#link.end();
  }

  destroy(): void {
    this.#link.destroy();
  }

  release(): Duplex {
    this.#link.socket.pause();
    this.#link.socket.setTimeout(0);
    this.#events = null;
    return new SecureDuplex(this);
  }

  received(bytes: Buffer): void {
    this.#events?.data(bytes);
  }

  happened(): void {
    // For HTTP/2 only.
  }

  unblocked(): void {
    while (!this.#link.isBlocked) {
      const [next] = this.#waiting;
      if (next === undefined) break;
      if (next.at < next.size) next.at = this.#link.send(next.head, next.chunks, next.at);
      if (this.#link.isBlocked || next.at < next.size) return;
      this.#waiting.shift();
      this.#events?.written(true);
    }
    if (this.#waiting.length > 0) return;
    if (this.#ending) this.#link.end();
    else this.#events?.drain();
  }

  ended(): void {
    this.#events?.end();
  }

  timeout(): void {
    this.#events?.timeout();
  }

  failed(reason: string): void {
    this.#events?.failed(reason);
  }

  closed(): void {
    this.#waiting.length = 0;
    this.#events?.closed();
  }
}
