/** A socket that speaks TLS past Node: Node reads and waits, the addon decrypts, encrypts and sends. */
import type { Socket } from 'node:net';
import type { Handle, NativeAddon } from '../../../native/addon.ts';

/** Flags below the number that calls of the addon answer with, and what the number is multiplied with. */
const SHAKEN = 1;
const SPEAKS_HTTP2 = 2;
const PEER_ENDED = 4;
const FAILED = 8;
const HAS_REST = 16;
const HAS_EVENTS = 32;
const OVER = 64;
const FLAGS = 128;
/** Encrypted bytes that are taken at once. */
const PIECE = 64 * 1024;
/** Plain bytes of a piece, and of a record that began before it. */
const scratch = Buffer.allocUnsafeSlow(PIECE + 32 * 1024);

/** Streams of HTTP/2 that a client may have open at once. */
const MAX_STREAMS = 128;

/** Who goes on with a link once hands are shaken. */
export interface TlsUser {
  /** HTTP/1.1: plain bytes, which are the user's. */
  received(bytes: Buffer): void;
  /** HTTP/2: something has happened, to be asked for with `http2Events`. */
  happened(): void;
  /** What waited has been sent: more may be. */
  unblocked(): void;
  /** The peer sends nothing more. */
  ended(): void;
  timeout(): void;
  failed(reason: string): void;
  closed(): void;
}

/** `headerLines` and `headerBytes`: most of a request of HTTP/2. */
export interface TlsLinkOptions {
  readonly addon: NativeAddon;
  readonly context: Handle;
  readonly choose: (serverName: string) => Handle | null;
  readonly headerLines: number;
  readonly headerBytes: number;
  /** Hands are shaken: gives the user of the link. Null: nobody wants it. */
  readonly shaken: (link: TlsLink, http2: boolean) => TlsUser | null;
  /** The handshake failed; the socket is closed. */
  readonly refused: (link: TlsLink, reason: string) => void;
}

/** Owns the socket. Ends with it. */
export class TlsLink {
  readonly socket: Socket;
  readonly #addon: NativeAddon;
  readonly #options: TlsLinkOptions;
  /** Null once it is closed: the descriptor may be another's then. */
  #handle: Handle | null;
  #user: TlsUser | null = null;
  #peerEnded = false;
  #blocked = false;
  #ending = false;
  #over = false;

  /** Null where Node does not tell the descriptor of the socket. */
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

  /** The handshake is over. */
  get isShaken(): boolean {
    return this.#user !== null;
  }

  /** The socket has yet to take what was sent: nothing more is sent before `unblocked`. */
  get isBlocked(): boolean {
    return this.#blocked;
  }

  /** The rest of the connection goes to somebody else. */
  handTo(user: TlsUser): void {
    this.#user = user;
  }

  /** HTTP/1.1: up to which of the bytes of head and chunks all is sent, the first `skip` left out; the link is blocked when that is not all. */
  send(head: string, chunks: readonly Uint8Array[], skip: number): number {
    if (this.#handle === null || this.#blocked || this.#ending) return skip;
    const told = this.#addon.tlsSend(this.#handle, head, chunks, skip);
    this.#afterCall(told);
    return Math.floor(told / FLAGS);
  }

  /** HTTP/2: an answer, sent with `flush`. False: nobody waits for it. */
  respond(stream: number, status: number, block: string, chunks: readonly Uint8Array[] | null): boolean {
    return this.#handle !== null && this.#addon.http2Respond(this.#handle, stream, String(status), block, chunks);
  }

  /** HTTP/2: gives a stream up, with an error code of RFC 9113 section 7. */
  reset(stream: number, error: number): void {
    if (this.#handle !== null) this.#addon.http2Control(this.#handle, 0, stream, error);
  }

  /** HTTP/2: `bytes` of a body have been read. */
  consumed(stream: number, bytes: number): void {
    if (this.#handle !== null) this.#addon.http2Control(this.#handle, 1, stream, bytes);
  }

  /** HTTP/2: no further requests are taken. */
  goAway(): void {
    if (this.#handle !== null) this.#addon.http2Control(this.#handle, 2, 0, 0);
  }

  /** HTTP/2: sends what there is. */
  flush(): void {
    if (this.#handle === null || this.#ending) return;
    const told = this.#addon.http2Flush(this.#handle);
    this.#afterCall(told);
    this.#over ||= (told & OVER) !== 0;
    if ((told & HAS_EVENTS) !== 0) this.#user?.happened();
    if (this.#over && !this.#blocked) this.end();
  }

  /** HTTP/2: what has happened, each with type, stream, number, and text or bytes. */
  takeEvents(): (number | string | Buffer)[] {
    return this.#handle === null ? [] : this.#addon.http2Events(this.#handle);
  }

  /** Ends our side behind what waits. Idempotent. */
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
    // The next piece comes into the same memory, and a request may wait.
    if (length > 0) this.#user?.received(Buffer.from(scratch.subarray(0, length)));
    if ((told & HAS_EVENTS) !== 0) this.#user?.happened();
    if ((told & FAILED) !== 0) this.#fail(handle);
    else if ((told & PEER_ENDED) !== 0) this.#onEnd();
    else if ((told & OVER) !== 0) this.end();
  }

  /** Whatever is told now, the alert or the last frame is on its way. */
  #fail(handle: Handle): void {
    const reason = this.#handle === null ? '' : this.#addon.tlsError(handle) || 'the client broke HTTP/2';
    if (this.#user === null) this.#options.refused(this, reason);
    else this.#user.failed(reason);
    this.#ending = true;
    // Who takes nothing does not hear of it.
    if (this.#blocked) this.socket.destroy();
    else this.socket.end(() => this.socket.destroy());
  }

  #onEnd(): void {
    if (this.#peerEnded) return;
    this.#peerEnded = true;
    if (this.#user === null) this.socket.destroy();
    else this.#user.ended();
  }

  /** What the system has not taken goes through Node, which waits for it. */
  #afterCall(told: number): void {
    if ((told & HAS_REST) === 0 || this.#handle === null) return;
    this.#blocked = true;
    this.socket.write(this.#addon.tlsTakeRest(this.#handle), (error) => this.#guard(() => this.#onRestSent(error)));
  }

  #onRestSent(error: Error | null | undefined): void {
    // Several may be on their way: the handshake and failures do not wait.
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

  /** What a user throws costs this connection, not the thread. */
  #guard(action: () => void): void {
    try {
      action();
    } catch {
      this.socket.destroy();
    }
  }
}
