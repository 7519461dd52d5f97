/** Reads TCP sockets into memory that is used again and again. */
import net from 'node:net';
import { TLSSocket } from 'node:tls';

/** What one read may bring: a keyframe, mostly. */
const BUFFER_SIZE = 256 * 1024;

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

  /**
   * Calls `onRead` for what arrives on `accepted`, a fresh socket of a server with `pauseOnConnect`, and returns the socket to
   * work with from now on. The first `length` bytes of `data` are valid during the call only. TLS sockets are returned as they are,
   * read in Node's way.
   */
  adopt(accepted: net.Socket, onRead: (data: Buffer, length: number) => void): net.Socket {
    const inside = accepted as unknown as Accepted;
    const handle = inside._handle;
    // On Windows a read that waits holds its buffer.
    if (accepted instanceof TLSSocket || process.platform === 'win32' || typeof handle?.useUserBuffer !== 'function') {
      accepted.on('data', (data: Buffer) => onRead(data, data.length));
      return accepted.resume();
    }
    inside._handle = null;
    const buffer = this.#buffer;
    const options = {
      handle,
      onread: {
        buffer,
        callback: (length: number): boolean => {
          onRead(buffer, length);
          return true;
        },
      },
    };
    const socket = new net.Socket(options);
    // The server counts the socket it has accepted.
    socket.once('close', () => accepted.destroy());
    return socket.resume();
  }
}
