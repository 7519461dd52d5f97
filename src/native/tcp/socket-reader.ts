/** Reads TCP sockets into memory that is used again and again. */
import net from 'node:net';
import { TLSSocket } from 'node:tls';
import { getSystemErrorName } from 'node:util';
import { loadAddon, type NativeAddon } from '../addon.ts';

/** What one read may bring: a keyframe, mostly. */
const BUFFER_SIZE = 256 * 1024;
/** After a read of more than this a socket is read again at once: the peer may wait for room, or has much to send. */
const MAX_CALM_READ = 48 * 1024;
/** Sockets that rested are read for so long at a stretch, ms. */
const STRETCH_MS = 2;

/** What a socket has inside: Node.js has no documented way to choose how an accepted one reads, nor to its descriptor. */
interface Inside {
  _handle?: (net.SocketConstructorOpts['handle'] & { readonly useUserBuffer?: unknown; readonly fd?: unknown }) | null;
}

/** Takes what was read: the first `length` bytes of `data`, valid during the call only. Tells whether what comes next can wait. */
export type OnRead = (data: Buffer, length: number) => boolean;

/**
 * Node.js allocates 64 KiB for every read of a socket and hands a piece of what came to the garbage collector, which marks the
 * whole heap for each 64 MiB of it. The sockets of a reader share one buffer instead: bytes are seen once and copied by who keeps them.
 */
export class SocketReader {
  readonly #addon: NativeAddon | null;
  readonly #buffer = Buffer.allocUnsafeSlow(BUFFER_SIZE);
  /** Not read now, though nobody has paused them. */
  readonly #resting = new Map<net.Socket, OnRead>();
  #waking = false;
  /** Calls of `wake` until sockets may rest again. */
  #roused = 0;

  /** Without the addon each `wake` costs two turns of the event loop for every socket that rests. */
  constructor(addon: NativeAddon | null = loadAddon().addon) {
    this.#addon = addon;
  }

  /**
   * Calls `onRead` for what arrives on `accepted`, a fresh socket of a server with `pauseOnConnect`, and returns the socket to
   * work with from now on. When `onRead` answers that what comes next can wait, the socket rests until `wake`: to wake for every
   * write of a peer costs more than to work it off. TLS sockets are returned as they are, read in Node's way, and never rest; so
   * are those that somebody has read from.
   */
  adopt(accepted: net.Socket, onRead: OnRead): net.Socket {
    const inside = accepted as unknown as Inside;
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
          if (!this.#mayRest(onRead, length)) return true;
          this.#resting.set(socket, onRead);
          return false;
        },
      },
    };
    const socket: net.Socket = new net.Socket(options);
    // The server counts the socket it has accepted.
    socket.once('close', () => {
      this.#resting.delete(socket);
      accepted.destroy();
    });
    return socket.resume();
  }

  /**
   * Has all sockets read that rest, and calls `done` when that is under way for the last of them: many take several turns of the event
   * loop. Must be called regularly: the end of a connection is not seen either while it rests.
   */
  wake(done?: () => void): void {
    if (this.#roused > 0) this.#roused -= 1;
    // The call before is still at it.
    if (this.#waking) return;
    this.#waking = true;
    this.#wakeFrom([...this.#resting.keys()], 0, done);
  }

  /** Has all sockets read until nothing is left in them, their ends included: none rests before `wake` was called twice. */
  rouse(): void {
    this.#roused = 2;
    for (const socket of this.#resting.keys()) this.#handBack(socket);
  }

  #wakeFrom(sockets: readonly net.Socket[], first: number, done: (() => void) | undefined): void {
    const from = performance.now();
    for (let index = first; index < sockets.length; index += 1) {
      const socket = sockets[index];
      const onRead = socket === undefined ? undefined : this.#resting.get(socket);
      if (socket === undefined || onRead === undefined) continue;
      try {
        if (!this.#readAtOnce(socket, onRead)) this.#handBack(socket);
      } catch (error) {
        // The others are read all the same, now and at the next call.
        socket.destroy(error instanceof Error ? error : new Error(String(error)));
      }
      if (performance.now() - from < STRETCH_MS) continue;
      setImmediate(() => this.#wakeFrom(sockets, index + 1, done));
      return;
    }
    this.#waking = false;
    done?.();
  }

  #mayRest(onRead: OnRead, length: number): boolean {
    return onRead(this.#buffer, length) && length <= MAX_CALM_READ && this.#roused === 0;
  }

  /**
   * Reads past the event loop, which would wake twice for the same bytes: to read, and to find that nobody reads on. Tells whether the
   * socket rests on.
   */
  #readAtOnce(socket: net.Socket, onRead: OnRead): boolean {
    const descriptor = (socket as unknown as Inside)._handle?.fd;
    if (this.#addon === null || socket.isPaused() || typeof descriptor !== 'number' || descriptor < 0) return false;
    const received = this.#addon.tcpReceive(descriptor, this.#buffer);
    // Whoever has sent nothing since is heard as soon as it does.
    if (received === undefined) return false;
    if (received > 0) return this.#mayRest(onRead, received);
    // The system tells an error once. An end is told again, to Node.js.
    if (received < 0) socket.destroy(readError(received));
    return false;
  }

  /** To Node.js; a socket that was paused meanwhile is resumed by who paused it. */
  #handBack(socket: net.Socket): void {
    this.#resting.delete(socket);
    if (!socket.destroyed && !socket.isPaused()) socket.resume();
  }
}

/** As Node.js has it. */
function readError(number: number): Error {
  const code = getSystemErrorName(number);
  return Object.assign(new Error(`read ${code}`), { code, errno: number, syscall: 'read' });
}
