/** Reads TCP sockets into memory that is used again and again. */
import net from 'node:net';
import { TLSSocket } from 'node:tls';

/** What one read may bring: a keyframe, mostly. */
const BUFFER_SIZE = 256 * 1024;
/** After a read of more than this a socket is read again at once: the peer may wait for room, or has much to send. */
const MAX_CALM_READ = 48 * 1024;

/** What a socket has inside: Node.js has no documented way to choose how an accepted one reads. */
interface Accepted {
  _handle?: (net.SocketConstructorOpts['handle'] & { readonly useUserBuffer?: unknown }) | null;
}

/**
 * Node.js allocates 64 KiB for every read of a socket and hands a piece of what came to the garbage collector, which marks the
 * whole heap for each 64 MiB of it. The sockets of a reader share one buffer instead: bytes are seen once and copied by who keeps them.
 */
export class SocketReader {
  readonly #buffer = Buffer.allocUnsafeSlow(BUFFER_SIZE);
  /** Not read now, though nobody has paused them. */
  readonly #resting = new Set<net.Socket>();
  /** Calls of `wake` until sockets may rest again. */
  #roused = 0;

  /**
   * Calls `onRead` for what arrives on `accepted`, a fresh socket of a server with `pauseOnConnect`, and returns the socket to
   * work with from now on. The first `length` bytes of `data` are valid during the call only. When `onRead` answers that what
   * comes next can wait, the socket rests until `wake`: to wake for every write of a peer costs more than to work it off. TLS
   * sockets are returned as they are, read in Node's way, and never rest; so are those that somebody has read from.
   */
  adopt(accepted: net.Socket, onRead: (data: Buffer, length: number) => boolean): net.Socket {
    const inside = accepted as unknown as Accepted;
    const handle = inside._handle;
    // On Windows a read that waits holds its buffer. One that was read before, for a PROXY header, goes on as it began.
    if (
      accepted instanceof TLSSocket ||
      accepted.bytesRead > 0 ||
      process.platform === 'win32' ||
      typeof handle?.useUserBuffer !== 'function'
    ) {
      accepted.on('data', (data: Buffer) => void onRead(data, data.length));
      return accepted.resume();
    }
    inside._handle = null;
    const buffer = this.#buffer;
    const options = {
      handle,
      onread: {
        buffer,
        callback: (length: number): boolean => {
          if (!onRead(buffer, length) || length > MAX_CALM_READ || this.#roused > 0) return true;
          this.#resting.add(socket);
          return false;
        },
      },
    };
    const socket: net.Socket = new net.Socket(options);
    // The server counts the socket it has accepted.
    socket.once('close', () => accepted.destroy());
    return socket.resume();
  }

  /** Has all sockets read that rest. Must be called regularly: the end of a connection is not seen either while it rests. */
  wake(): void {
    if (this.#roused > 0) this.#roused -= 1;
    this.#readAll();
  }

  /** Has all sockets read until nothing is left in them, their ends included: none rests before `wake` was called twice. */
  rouse(): void {
    this.#roused = 2;
    this.#readAll();
  }

  #readAll(): void {
    // One that was paused meanwhile is resumed by who paused it.
    for (const socket of this.#resting) if (!socket.destroyed && !socket.isPaused()) socket.resume();
    this.#resting.clear();
  }
}
