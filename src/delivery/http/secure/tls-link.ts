/** A TLS socket without Node's TLS streams: Node reads and waits, the addon decrypts, encrypts and sends. */
import type { Socket } from 'node:net';
import type { Handle, NativeAddon } from '../../../native/addon.ts';

/** Flags in the low digits of the addon's results, and the factor of the number above them. */
const SHAKEN = 1;
const SPEAKS_HTTP2 = 2;
const PEER_ENDED = 4;
const FAILED = 8;
const HAS_REST = 16;
const HAS_EVENTS = 32;
const OVER = 64;
const FLAGS = 128;
/** Encrypted bytes processed at once. */
const PIECE = 64 * 1024;
/** Decrypted bytes of a piece and of a record that started before it. */
const scratch = Buffer.allocUnsafeSlow(PIECE + 32 * 1024);

/** Concurrent HTTP/2 streams per client. */
const MAX_STREAMS = 128;

/** The user of a link after the handshake. */
export interface TlsUser {
  /** HTTP/1.1: decrypted bytes, which belong to the user. */
  received(bytes: Buffer): void;
  /** HTTP/2: events are available (`takeEvents`). */
  happened(): void;
  /** The queue has been sent: more may be sent. */
  unblocked(): void;
  /** The peer has closed its side. */
  ended(): void;
  timeout(): void;
  failed(reason: string): void;
  closed(): void;
}

/** `headerLines` and `headerBytes`: limits of an HTTP/2 request. */
export interface TlsLinkOptions {
  readonly addon: NativeAddon;
  readonly context: Handle;
  readonly choose: (serverName: string) => Handle | null;
  readonly headerLines: number;
  readonly headerBytes: number;
  /** The handshake is complete: returns the user of the link. Null: no user, the connection is closed. */
  readonly shaken: (link: TlsLink, http2: boolean) => TlsUser | null;
  /** The handshake failed; the socket is closed. */
  readonly refused: (link: TlsLink, reason: string) => void;
}

/** Owns the socket. Ends with it. */
export class TlsLink {
  readonly socket: Socket;
  readonly #addon: NativeAddon;
  readonly #options: TlsLinkOptions;
  /** Null after the close: the descriptor may have been reused. */
  #handle: Handle | null;
  #user: TlsUser | null = null;
  #peerEnded = false;
  #blocked = false;
  #ending = false;
  #over = false;

  /** Null if Node does not reveal the descriptor of the socket. */
  static open(socket: Socket, options: TlsLinkOptions): TlsLink | null {
    const { addon, context, headerLines, headerBytes } = options;
    const { fd } = (socket as unknown as { readonly _handle?: { readonly fd?: unknown } | null })._handle ?? {};
    if (typeof fd !== 'number' || fd < 0) return null;
    return new TlsLink(socket, options, addon.tlsOpen(context, fd, MAX_STREAMS, headerLines, headerBytes));
  }

  private constructor(socket: Socket, options: TlsLinkOptions, handle: Handle) {
    this.socket = socket;
    this.#addon = options.addon;
    this.#options = options;
    this.#handle = handle;
    socket.on('data', (chunk: Buffer) => this.#guard(() => this.#onData(chunk)));
    socket.on('end', () => this.#guard(() => this.#onEnd()));
    socket.on('timeout', () => this.#guard(() => (this.#user === null ? socket.destroy() : this.#user.timeout())));
    socket.on('error', (error: NodeJS.ErrnoException) => this.#guard(() => this.#user?.failed(error.code ?? error.message)));
    socket.on('close', () => this.#onClose());
  }

  /** Whether the handshake is complete. */
  get isShaken(): boolean {
    return this.#user !== null;
  }

  /** The socket has unsent bytes: nothing more is sent before `unblocked`. */
  get isBlocked(): boolean {
    return this.#blocked;
  }

  /** Passes the connection to another user. */
  handTo(user: TlsUser): void {
    this.#user = user;
  }

  /**
   * HTTP/1.1: sends head and chunks without the first `skip` bytes. Returns the offset up to which all is sent; the link is blocked if that
   * is not the end.
   */
  send(head: string, chunks: readonly Uint8Array[], skip: number): number {
    if (this.#handle === null || this.#blocked || this.#ending) return skip;
    const told = this.#addon.tlsSend(this.#handle, head, chunks, skip);
    this.#afterCall(told);
    return Math.floor(told / FLAGS);
  }

  /** HTTP/2: an answer, sent with `flush`. False: its stream has ended. */
  respond(stream: number, status: number, block: string, chunks: readonly Uint8Array[] | null): boolean {
    return this.#handle !== null && this.#addon.http2Respond(this.#handle, stream, String(status), block, chunks);
  }

  /** HTTP/2: resets a stream with an error code of RFC 9113 section 7. */
  reset(stream: number, error: number): void {
    if (this.#handle !== null) this.#addon.http2Control(this.#handle, 0, stream, error);
  }

  /** HTTP/2: the user has read `bytes` of a body. */
  consumed(stream: number, bytes: number): void {
    if (this.#handle !== null) this.#addon.http2Control(this.#handle, 1, stream, bytes);
  }

  /** HTTP/2: no further requests are accepted. */
  goAway(): void {
    if (this.#handle !== null) this.#addon.http2Control(this.#handle, 2, 0, 0);
  }

  /** HTTP/2: sends all queued frames. */
  flush(): void {
    if (this.#handle === null || this.#ending) return;
    const told = this.#addon.http2Flush(this.#handle);
    this.#afterCall(told);
    this.#over ||= (told & OVER) !== 0;
    if ((told & HAS_EVENTS) !== 0) this.#user?.happened();
    if (this.#over && !this.#blocked) this.end();
  }

  /** HTTP/2: events since the last call, each with type, stream, number, and text or bytes. */
  takeEvents(): (number | string | Buffer)[] {
    return this.#handle === null ? [] : this.#addon.http2Events(this.#handle);
  }

  /** Half-closes after the queue is sent. Idempotent. */
  end(): void {
    if (this.#ending || this.#handle === null) return;
    if (this.#blocked) {
      this.#over = true;
      return;
    }
    this.#ending = true;
    this.#afterCall(this.#addon.tlsShut(this.#handle));
    this.socket.end();
  }

  destroy(): void {
    this.socket.destroy();
  }

  #onData(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && this.#handle !== null; at += PIECE) this.#receive(this.#handle, chunk.subarray(at, at + PIECE));
  }

  #receive(handle: Handle, piece: Buffer): void {
    const told = this.#addon.tlsReceive(handle, piece, scratch, this.#options.choose);
    const length = Math.floor(told / FLAGS);
    this.#afterCall(told);
    if (this.#user === null && (told & SHAKEN) !== 0) {
      this.#user = this.#options.shaken(this, (told & SPEAKS_HTTP2) !== 0);
      if (this.#user === null) {
        this.socket.destroy();
        return;
      }
    }
    // The next piece overwrites the same memory, and a request may wait.
    if (length > 0) this.#user?.received(Buffer.from(scratch.subarray(0, length)));
    if ((told & HAS_EVENTS) !== 0) this.#user?.happened();
    if ((told & FAILED) !== 0) this.#fail(handle);
    else if ((told & PEER_ENDED) !== 0) this.#onEnd();
    else if ((told & OVER) !== 0) this.end();
  }

  /** The alert or the last frame has already been sent. */
  #fail(handle: Handle): void {
    const reason = this.#handle === null ? '' : this.#addon.tlsError(handle) || 'the client broke HTTP/2';
    if (this.#user === null) this.#options.refused(this, reason);
    else this.#user.failed(reason);
    this.#ending = true;
    // A peer that does not read would not receive the close.
    if (this.#blocked) this.socket.destroy();
    else this.socket.end(() => this.socket.destroy());
  }

  #onEnd(): void {
    if (this.#peerEnded) return;
    this.#peerEnded = true;
    if (this.#user === null) this.socket.destroy();
    else this.#user.ended();
  }

  /** Node sends the bytes that the kernel did not accept, and waits for it. */
  #afterCall(told: number): void {
    if ((told & HAS_REST) === 0 || this.#handle === null) return;
    this.#blocked = true;
    this.socket.write(this.#addon.tlsTakeRest(this.#handle), (error) => this.#guard(() => this.#onRestSent(error)));
  }

  #onRestSent(error: Error | null | undefined): void {
    // Several writes may be pending: handshake and alerts do not wait.
    if (error || this.#handle === null || this.socket.writableLength > 0) return;
    this.#blocked = false;
    this.#addon.tlsRestSent(this.#handle);
    this.#user?.unblocked();
    if (this.#over && !this.#blocked) this.end();
  }

  #onClose(): void {
    const handle = this.#handle;
    this.#handle = null;
    if (handle !== null) this.#addon.tlsClose(handle);
    const user = this.#user;
    this.#user = null;
    this.#guard(() => user?.closed());
  }

  /** An exception of a user ends this connection, not the thread. */
  #guard(action: () => void): void {
    try {
      action();
    } catch {
      this.socket.destroy();
    }
  }
}
