/** Reads TCP sockets into memory that is used again and again. */
import net from 'node:net';
import { TLSSocket } from 'node:tls';
import { getSystemErrorName } from 'node:util';
import { loadAddon, type NativeAddon } from '../addon.ts';

/** Limit of one read: mostly a keyframe. */
const BUFFER_SIZE = 256 * 1024;
/** After a read of more than this a socket is read again at once: the peer may wait for room, or has much to send. */
const CALM_READ = 48 * 1024;
/**
 * Linux makes room for twice the largest read. So a socket may receive more than its largest read by this factor, up to `MAX_CALM_READ`.
 */
const CALM_GROWTH = 1.5;
const MAX_CALM_READ = 192 * 1024;
/** Maximum time for reading resting sockets in one turn, ms. */
const STRETCH_MS = 2;
/** How long the rests last. */
const SHORT_REST_MS = 10;
const LONG_REST_MS = 100;
const MAX_REST_MS = 200;
/** Fewer sockets are read for less when they have something than by a sweep that looks for it. */
const MIN_DOZING = 5;

/** How long the next data of a socket can wait. */
export const Rest = {
  NONE: 0,
  /** For a hundredth of a second, and longer where nothing of it is needed yet: until then, or the next `wake`. */
  SHORT: 1,
  /** For a tenth of a second. */
  LONG: 2,
  /** For a fifth of a second. */
  LONGEST: 3,
} as const;
/** Any of these. */
export type Rest = (typeof Rest)[keyof typeof Rest];

/** Internals of a socket: Node.js has no documented access to the read mode of an accepted socket, nor to its descriptor. */
interface Inside {
  _handle?: (net.SocketConstructorOpts['handle'] & { readonly useUserBuffer?: unknown; readonly fd?: unknown }) | null;
}

/** Takes the first `length` bytes of `data`, which are valid during the call only. Returns how long the next bytes can wait. */
export type OnRead = (data: Buffer, length: number) => Rest;

interface Sleeper {
  readonly onRead: OnRead;
  /** The last answer of `onRead`. */
  wanted: Rest;
  /** For how long, ms, no incoming data will be needed. */
  readonly slack: () => number;
  /** When incoming data is needed, by `performance.now()`; null: not known, call `slack`. */
  neededAt: number | null;
  /** Something has come since the last `wake`. */
  heard: boolean;
  /** A read of more than this is a large one. */
  calmRead: number;
}

/**
 * Node.js allocates 64 KiB for every read of a socket and leaves a piece of it to the garbage collector, which marks the whole heap for
 * each 64 MiB. The sockets of a reader share one buffer instead: a listener copies the bytes that it keeps.
 */
export class SocketReader {
  readonly #addon: NativeAddon | null;
  readonly #buffer = Buffer.allocUnsafeSlow(BUFFER_SIZE);
  /** Not read before the next `wake`, though not paused by their owners. */
  readonly #resting = new Map<net.Socket, Sleeper>();
  /** Read by a sweep of their own. */
  readonly #dozing = new Map<net.Socket, Sleeper>();
  /** Sockets by the rest that they want. */
  readonly #wanting: Record<Rest, number> = { [Rest.NONE]: 0, [Rest.SHORT]: 0, [Rest.LONG]: 0, [Rest.LONGEST]: 0 };
  #sweep: NodeJS.Timeout | null = null;
  #sweeping = false;
  #waking = false;
  /** Calls of `wake` until sockets may rest again. */
  #readNowTurns = 0;

  /** Without the addon each `wake` costs two turns of the event loop for every socket that rests, and none rests for short. */
  constructor(addon: NativeAddon | null = loadAddon().addon) {
    this.#addon = addon;
  }

  /**
   * Calls `onRead` for bytes that arrive on `accepted`, a new socket of a server with `pauseOnConnect`, and returns the socket to use from
   * now on. When `onRead` answers that the next bytes can wait, the socket rests, because waking for every write of a peer costs more than
   * processing it. `slack` is called once in each short rest, after the read was processed: for how many ms no incoming bytes will be
   * needed, if known; it must not throw. TLS sockets, and sockets that were read before, are returned unchanged: Node.js reads them, and
   * they never rest.
   */
  adopt(accepted: net.Socket, onRead: OnRead, slack: () => number = () => 0): net.Socket {
    const inside = accepted as unknown as Inside;
    const handle = inside._handle;
    // On Windows a pending read holds its buffer. A socket that was read before, for a PROXY header, keeps its read mode.
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
    const sleeper: Sleeper = { onRead, slack, wanted: Rest.NONE, neededAt: null, heard: true, calmRead: CALM_READ };
    this.#wanting[Rest.NONE] += 1;
    const options = {
      handle,
      onread: {
        buffer,
        callback: (length: number): boolean => {
          const rest = this.#restAfter(sleeper, length);
          if (rest === Rest.NONE) return true;
          this.#lay(socket, sleeper, rest);
          return false;
        },
      },
    };
    const socket: net.Socket = new net.Socket(options);
    // The server counts the socket it has accepted.
    socket.once('close', () => {
      this.#want(sleeper, Rest.NONE);
      this.#wanting[Rest.NONE] -= 1;
      this.#forget(socket);
      accepted.destroy();
    });
    return socket.resume();
  }

  /** How often `wake` has to be called for now, ms. */
  get wakeInterval(): number {
    return this.#wanting[Rest.SHORT] > 0 || this.#wanting[Rest.LONG] > 0 ? LONG_REST_MS : MAX_REST_MS;
  }

  /**
   * Reads all resting sockets, and calls `done` when the last of them is being read: many sockets take several turns of the event loop.
   * Must be called at each `wakeInterval`, because the end of a connection is not noticed during a rest either.
   */
  wake(done?: () => void): void {
    if (this.#readNowTurns > 0) this.#readNowTurns -= 1;
    // Polling a silent socket repeatedly costs more than an event.
    for (const [socket, sleeper] of this.#dozing) {
      if (!sleeper.heard) this.#handBack(socket);
      sleeper.heard = false;
    }
    // The call before is still at it.
    if (this.#waking) return;
    this.#waking = true;
    this.#visitFrom([...this.#resting.keys(), ...this.#dozing.keys()], 0, () => {
      this.#waking = false;
      done?.();
    });
  }

  /** Has all sockets read until nothing is left in them, their ends included: none rests before `wake` was called twice. */
  readNow(): void {
    this.#readNowTurns = 2;
    for (const socket of [...this.#resting.keys(), ...this.#dozing.keys()]) this.#handBack(socket);
  }

  /** The socket is read again as soon as data arrives. Does nothing for a paused socket. */
  endRest(socket: net.Socket): void {
    this.#handBack(socket);
  }

  readonly #sweepShort = (): void => {
    // The previous sweep is still running.
    if (this.#sweeping) return;
    this.#sweeping = true;
    const now = performance.now();
    const needed: net.Socket[] = [];
    for (const [socket, sleeper] of this.#dozing) {
      sleeper.neededAt ??= now + sleeper.slack();
      if (sleeper.neededAt <= now) needed.push(socket);
    }
    this.#visitFrom(needed, 0, () => {
      this.#sweeping = false;
    });
  };

  #visitFrom(sockets: readonly net.Socket[], first: number, done: () => void): void {
    const from = performance.now();
    for (let index = first; index < sockets.length; index += 1) {
      const socket = sockets[index];
      if (socket === undefined) continue;
      try {
        this.#visit(socket);
      } catch (error) {
        // The other sockets are read all the same, now and at the next call.
        socket.destroy(error instanceof Error ? error : new Error(String(error)));
      }
      if (performance.now() - from < STRETCH_MS) continue;
      setImmediate(() => this.#visitFrom(sockets, index + 1, done));
      return;
    }
    done();
  }

  /** Reads past the event loop, which would wake twice for the same bytes: to read, and to find nothing more. */
  #visit(socket: net.Socket): void {
    const dozing = this.#dozing.get(socket);
    const sleeper = dozing ?? this.#resting.get(socket);
    if (sleeper === undefined) return;
    const descriptor = (socket as unknown as Inside)._handle?.fd;
    if (this.#addon === null || socket.isPaused() || typeof descriptor !== 'number' || descriptor < 0) {
      this.#handBack(socket);
      return;
    }
    const received = this.#addon.tcpReceive(descriptor, this.#buffer);
    if (received === undefined) {
      // A peer that was silent for so long is read as soon as it sends.
      if (dozing === undefined) this.#handBack(socket);
      return;
    }
    if (received > 0) {
      this.#lay(socket, sleeper, this.#restAfter(sleeper, received));
      return;
    }
    // The system reports an error only once. It reports an end again, to Node.js.
    if (received < 0) socket.destroy(readError(received));
    this.#handBack(socket);
  }

  /** Passes on the bytes. Returns how long the socket may rest. */
  #restAfter(sleeper: Sleeper, length: number): Rest {
    sleeper.heard = true;
    sleeper.neededAt = null;
    this.#want(sleeper, sleeper.onRead(this.#buffer, length));
    const isLarge = length > sleeper.calmRead;
    sleeper.calmRead = Math.max(sleeper.calmRead, Math.min(CALM_GROWTH * length, MAX_CALM_READ));
    if (isLarge || this.#readNowTurns > 0) return Rest.NONE;
    const isShort = sleeper.wanted === Rest.SHORT;
    return isShort && (this.#addon === null || this.#wanting[Rest.SHORT] < MIN_DOZING) ? Rest.NONE : sleeper.wanted;
  }

  #want(sleeper: Sleeper, rest: Rest): void {
    this.#wanting[sleeper.wanted] -= 1;
    this.#wanting[rest] += 1;
    sleeper.wanted = rest;
  }

  /** Starts or ends a rest of the socket. */
  #lay(socket: net.Socket, sleeper: Sleeper, rest: Rest): void {
    if (rest === Rest.NONE) {
      this.#handBack(socket);
      return;
    }
    const to = rest === Rest.SHORT ? this.#dozing : this.#resting;
    if (to.has(socket)) return;
    const from = to === this.#dozing ? this.#resting : this.#dozing;
    from.delete(socket);
    to.set(socket, sleeper);
    this.#keepSweeping();
  }

  #keepSweeping(): void {
    if (this.#dozing.size > 0) {
      this.#sweep ??= setInterval(this.#sweepShort, SHORT_REST_MS);
    } else if (this.#sweep !== null) {
      clearInterval(this.#sweep);
      this.#sweep = null;
    }
  }

  #forget(socket: net.Socket): void {
    this.#resting.delete(socket);
    if (this.#dozing.delete(socket)) this.#keepSweeping();
  }

  /** To Node.js; a socket that was paused meanwhile is resumed by who paused it. */
  #handBack(socket: net.Socket): void {
    this.#forget(socket);
    if (!socket.destroyed && !socket.isPaused()) socket.resume();
  }
}

/** As Node.js has it. */
function readError(number: number): Error {
  const code = getSystemErrorName(number);
  return Object.assign(new Error(`read ${code}`), { code, errno: number, syscall: 'read' });
}
